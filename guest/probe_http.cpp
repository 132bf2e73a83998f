#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "guest/probe.h"

namespace fuse {

namespace {

// Enough for any line of status.
constexpr std::size_t kept_answer = 1024;
// A server whose answer is cut off complains; of a longer one it may.
constexpr std::size_t most_answer = 256U << 10U;

class HttpProbe final : public Probe {
 public:
  HttpProbe(EventLoop& loop, const HealthcheckHttp& http, OnProbed on_probed)
      : loop_(loop),
        name_(cat("GET ", http.path.empty() ? "/" : http.path, " on port ", http.port)),
        unsent_(probe_request(http)),
        on_probed_(std::move(on_probed)) {}

  void begin(std::int32_t port, std::chrono::seconds timeout) {
    timer_ = loop_.after(timeout, [this, timeout] {
      // A status is an answer, whatever has become of the rest.
      if (has_status()) return judge();
      finish({.message = cat(name_, " was not answered within ", to_string(timeout))});
    });
    if (auto connecting = connect(port); !connecting) {
      problem_ = connecting.error().message;
      timer_ = loop_.after({}, [this] { finish({.message = problem_}); });
    }
  }

  [[nodiscard]] bool is_stuck() const override { return false; }

 private:
  Result<void> connect(std::int32_t port) {
    fd_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd_.valid()) return errno_error(cat(name_, ": create a socket"), errno);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0 &&
        errno != EINPROGRESS) {
      return errno_error(name_, errno);
    }
    auto watch = loop_.watch(fd_.get(), EPOLLOUT, [this](std::uint32_t) { on_event(); });
    if (!watch) return watch.error();
    watch_ = *std::move(watch);
    return {};
  }

  void on_event() {
    if (unsent_.empty()) return receive();
    int failure = 0;
    socklen_t size = sizeof failure;
    ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0) return fail(failure);
    const ssize_t sent = ::send(fd_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) fail(errno);
      return;
    }
    unsent_.erase(0, static_cast<std::size_t>(sent));
    if (unsent_.empty()) watch_.set_events(EPOLLIN);
  }

  void receive() {
    std::array<char, 4096> buffer;  // NOLINT(*-member-init): written by recv
    const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got < 0 && !has_status()) return fail(errno);
    if (got <= 0) return judge();
    const auto count = static_cast<std::size_t>(got);
    received_ += count;
    if (answer_.size() < kept_answer) {
      answer_.append(buffer.data(), std::min(count, kept_answer - answer_.size()));
    }
    const bool hopeless = answer_.size() == kept_answer && !has_status();
    if (received_ >= most_answer || hopeless) judge();
  }

  [[nodiscard]] bool has_status() const { return answer_.find('\n') != std::string::npos; }

  void judge() { finish(judge_answer(answer_, name_)); }
  void fail(int error) { finish({.message = cat(name_, ": ", std::strerror(error))}); }

  void finish(const ProbeOutcome& outcome) {
    timer_.reset();
    watch_.reset();
    fd_.reset();
    if (const auto on_probed = std::exchange(on_probed_, nullptr)) on_probed(outcome);
  }

  EventLoop& loop_;
  std::string name_;
  std::string unsent_;
  OnProbed on_probed_;
  std::string problem_{};
  Fd fd_{};
  std::string answer_{};
  std::size_t received_ = 0;
  EventLoop::Registration watch_{};
  EventLoop::Registration timer_{};
};

}  // namespace

std::unique_ptr<Probe> probe_http(EventLoop& loop, const HealthcheckHttp& http,
                                  std::chrono::seconds timeout, OnProbed on_probed) {
  auto probe = std::make_unique<HttpProbe>(loop, http, std::move(on_probed));
  probe->begin(http.port, timeout);
  return probe;
}

}  // namespace fuse
