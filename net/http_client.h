#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "net/byte_stream.h"
#include "net/headers.h"

namespace fuse {

struct HttpCall {
  std::string method = "GET";
  std::string target = "/";  // encoded path and query, below the client's base address
  HttpHeaders headers{};
  std::string body{};
  std::optional<std::chrono::milliseconds> timeout{};  // of the whole; else the client's
  // Of a stream: the longest time without a byte, after which it counts as
  // lost.
  std::optional<std::chrono::milliseconds> idle_timeout{};
  std::stop_token stop{};  // ends the call at once
};

struct HttpReply {
  int status = 0;
  HttpHeaders headers{};
  std::string body{};
};

// How a streamed answer came to its end.
struct HttpStreamReply {
  enum class End {
    finished,  // the server ended it
    stopped,   // by the sink or the stop token
    lost,      // the connection broke or went silent: `why`
  };
  HttpReply head{};  // its body holds the answer when the status is not 2xx
  End end = End::finished;
  std::string why{};
};

struct HttpUpgradeReply {
  HttpReply reply{};                     // 101, or the refusal with its body
  std::unique_ptr<ByteStream> stream{};  // absent when refused
};

// Takes the body of a 2xx answer piece by piece; false ends the call.
using HttpSink = std::function<bool(std::string_view)>;

// Calls one server.  An answer of any status is a success; an Error says that
// there was none: unreachable "cannot reach PLACE: why", or unavailable when
// the call was stopped or took too long.  Safe from several threads.
class HttpClient {
 public:
  virtual ~HttpClient() = default;
  virtual Result<HttpReply> send(const HttpCall& call) = 0;
  // An error only when no head came.  The call's timeout is for the head alone.
  virtual Result<HttpStreamReply> stream(const HttpCall& call, const HttpSink& sink) = 0;
  // Adds Connection and Upgrade.  The timeout is for the handshake; the stop
  // token stays with the handshake too.
  virtual Result<HttpUpgradeReply> upgrade(const HttpCall& call, std::string_view protocol) = 0;
  // The server in words, as errors name it: "http://10.0.0.7:8091".
  [[nodiscard]] virtual std::string place() const = 0;
};

struct HttpClientOptions {
  std::string base_url{};  // "https://fuse.example.com/prefix"; ignored on a unix socket
  fs::path unix_socket{};  // instead of an address
  std::string token{};     // sent as `Authorization: Bearer`
  std::string user_agent = "fuse";
  fs::path ca_file{};  // empty: the first of default_ca_files() there is
  bool verify_tls = true;
  std::size_t most_reply = 256U << 20U;
  std::chrono::milliseconds connect_timeout{std::chrono::seconds(10)};
  std::chrono::milliseconds timeout{std::chrono::seconds(60)};
};

// Where distributions keep the certificates they trust, in the order tried.
std::vector<fs::path> default_ca_files();

// A client on libcurl.  Redirects are not followed.  A proxy from the
// environment is used for addresses other than this machine's own.  Connections
// are kept and used again.  invalid_argument for an address that is none.
Result<std::unique_ptr<HttpClient>> make_http_client(HttpClientOptions options);

}  // namespace fuse
