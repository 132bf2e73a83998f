#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "net/headers.h"
#include "net/transport.h"

namespace fuse {

struct CurlTransfer {
  std::string method = "GET";
  HttpHeaders headers{};
  std::string_view body{};
  bool connect_only = false;  // up to the connection, no request
  std::stop_token stop{};
  std::optional<std::chrono::milliseconds> time_for_all{};
  std::optional<std::chrono::milliseconds> time_for_head{};
  std::optional<std::chrono::milliseconds> time_without_bytes{};  // once the head is there
  // Takes the body piece by piece; false makes the transfer fail.
  std::function<bool(int status, std::string_view bytes)> on_body{};
};

struct CurlOutcome {
  enum class End { done, stopped, too_slow, silent, failed };
  End end = End::failed;
  int status = 0;  // 0 while no whole head came
  HttpHeaders headers{};
  std::string why{};  // with `failed`
};

// One connection's worth of libcurl, used by one thread at a time.  Transfers one
// after another use the connection again where the server keeps it.
class CurlSession {
 public:
  static Result<std::unique_ptr<CurlSession>> open();
  virtual ~CurlSession() = default;

  // Back to defaults, keeping the connection.
  virtual void reset() = 0;
  virtual void set_url(const std::string& url) = 0;
  virtual void set_unix_socket(const std::string& path) = 0;
  virtual void set_connect_timeout(std::chrono::milliseconds timeout) = 0;
  virtual void set_direct(bool direct) = 0;  // past the environment's proxies
  virtual void set_trusted(const fs::path& ca_file) = 0;
  virtual void trust_anyone() = 0;
  virtual CurlOutcome run(const CurlTransfer& transfer) = 0;
};

// The connection of a session whose connect_only transfer is done.
std::unique_ptr<Transport> make_curl_transport(std::unique_ptr<CurlSession> session);

// Sessions that are not in use, with their kept connections.
class CurlSessionPool {
 public:
  // A reset one, new if need be.
  Result<std::unique_ptr<CurlSession>> take();
  void give_back(std::unique_ptr<CurlSession> session);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<CurlSession>> idle_{};
};

}  // namespace fuse
