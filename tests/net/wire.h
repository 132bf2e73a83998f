#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/log.h"
#include "base/text.h"
#include "net/http_server.h"
#include "net/socket_stream.h"
#include "tests/catch.h"

namespace fuse {

// No test waits for a time on purpose; this only ends one that hangs.
inline constexpr std::chrono::seconds watchdog{60};

// A folder of a test's own, gone after it.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(fs::temp_directory_path() / ("fuse-test-" + random_hex(6))) {
    fs::create_directory(path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// A client that sends exactly the bytes a test says.
class RawClient {
 public:
  explicit RawClient(Fd socket)
      : stream_(std::make_unique<SocketStream>(make_plain_transport(std::move(socket)))) {}

  static RawClient tcp(std::uint16_t port) {
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return RawClient(std::move(socket));
  }
  static RawClient unix_socket(const fs::path& path) {
    Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path.native().size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path.c_str(), path.native().size() + 1);
    REQUIRE(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    return RawClient(std::move(socket));
  }

  void send(std::string_view bytes) { REQUIRE(stream_->write(bytes)); }
  // For a server that may be gone already.
  bool try_send(std::string_view bytes) { return stream_->write(bytes).has_value(); }

  // What came up to and with `end`.
  std::string read_until(std::string_view end) {
    std::size_t found = 0;
    while ((found = stream_->ahead().find(end)) == std::string::npos) {
      const auto got = stream_->fill(watchdog);
      REQUIRE(got);
      INFO("so far: " << stream_->ahead());
      REQUIRE(got->kind == ReadOutcome::Kind::bytes);
    }
    return take(found + end.size());
  }
  // All up to the end of the connection, however it comes.
  std::string read_all() {
    while (true) {
      const auto got = stream_->fill(watchdog);
      if (!got) break;
      REQUIRE(got->kind != ReadOutcome::Kind::timed_out);
      if (got->kind == ReadOutcome::Kind::end) break;
    }
    return take(stream_->ahead().size());
  }
  // One answer with a Content-Length: its status line and body, as "200|body".
  std::string read_answer() {
    const std::string head = read_until("\r\n\r\n");
    constexpr std::string_view field = "Content-Length: ";
    const std::size_t at = head.find(field);
    std::size_t size = at == std::string::npos ? 0 : std::stoul(head.substr(at + field.size()));
    while (stream_->ahead().size() < size) {
      const auto got = stream_->fill(watchdog);
      REQUIRE(got);
      REQUIRE(got->kind == ReadOutcome::Kind::bytes);
    }
    return cat(head.substr(9, 3), "|", take(size));
  }
  void shutdown_write() { stream_->shutdown_write(); }
  void close() { stream_->close(); }

 private:
  std::string take(std::size_t size) {
    std::string text(stream_->ahead().substr(0, size));
    stream_->skip(size);
    return text;
  }

  std::unique_ptr<SocketStream> stream_;
};

// A log that keeps its lines.
class MemoryLog final : public Log {
 public:
  void write(LogLevel /*level*/, std::string_view message,
             std::initializer_list<LogField> fields) override {
    const std::scoped_lock lock(mutex_);
    lines_ += message;
    for (const auto& [key, value] : fields) lines_ += cat(" ", key, "=", value);
    lines_ += '\n';
  }
  [[nodiscard]] std::string lines() const {
    const std::scoped_lock lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::string lines_{};
};

// A server on a port of loopback for one test.
struct TestServer {
  MemoryLog log{};
  std::unique_ptr<HttpServer> server{};

  explicit TestServer(HttpHandler handler, HttpServerOptions options = {},
                      const HttpEndpoint& endpoint = TcpEndpoint{}) {
    auto made = HttpServer::listen(endpoint, std::move(options), std::move(handler), log);
    if (!made) FAIL(made.error().message);
    server = *std::move(made);
  }
  RawClient connect() const { return RawClient::tcp(server->port()); }
  [[nodiscard]] std::string url() const { return cat("http://127.0.0.1:", server->port()); }
};

// Waits until another thread says so.
class Signal {
 public:
  void set() {
    const std::scoped_lock lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, watchdog, [&] { return done_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

// What other threads than the test's own expect: Catch's checks may not be used
// there.
class Expectations {
 public:
  void expect(bool held) {
    if (!held) failed_ = true;
  }
  [[nodiscard]] bool held() const { return !failed_; }

 private:
  std::atomic<bool> failed_ = false;
};

// Blocks until the token is asked to stop; false when the watchdog bites.
inline bool wait_for_stop(const std::stop_token& token) {
  Signal stopped;
  const std::stop_callback callback(token, [&] { stopped.set(); });
  return stopped.wait();
}

}  // namespace fuse
