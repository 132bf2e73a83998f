#include "net/http_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/text.h"
#include "net/hangup_watch.h"
#include "net/http_exchange.h"
#include "net/listener.h"
#include "net/live_connections.h"
#include "net/tls.h"
#include "net/worker_pool.h"

namespace fuse {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds longest_goodbye{2000};
constexpr milliseconds longest_goodbye_at_stop{250};
constexpr int out_of_descriptors_pause = 100;  // milliseconds

bool came_in(const Result<ReadOutcome>& got) {
  return got && got->kind == ReadOutcome::Kind::bytes;
}

class Server final : public HttpServer {
 public:
  Server(Listener listener, HttpServerOptions options, HttpHandler handler, Log& log)
      : site_{std::move(options), std::move(handler), log},
        listener_(std::move(listener)),
        port_(listener_->port()),
        place_(listener_->is_unix()
                   ? cat("unix:", listener_->address())
                   : cat(site_.options.tls ? "https://" : "http://", listener_->address())) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() override { stop(milliseconds(0)); }

  Result<void> start();
  [[nodiscard]] std::uint16_t port() const override { return port_; }
  [[nodiscard]] std::string place() const override { return place_; }
  void stop(milliseconds grace) override;

 private:
  void accept_all();
  void admit(Fd socket);
  void answer_full(AcceptedConnection connection);
  void serve(AcceptedConnection accepted);
  HttpExchange::After serve_one(HttpExchange& http, LiveConnections::Entry& entry,
                                SocketStream& stream, milliseconds patience);
  void run_upgrade(const HttpResponse::Upgrade& upgrade, LiveConnections::Entry& entry,
                   SocketStream& stream);

  HttpSite site_;
  std::optional<Listener> listener_;
  std::uint16_t port_;
  std::string place_;
  std::unique_ptr<TlsServer> tls_{};
  Fd wake_{};
  LiveConnections live_{};
  std::unique_ptr<HangupWatch> hangups_{};
  std::unique_ptr<WorkerPool> workers_{};
  std::thread acceptor_{};
  std::once_flag stopped_{};
};

Result<void> Server::start() {
  if (site_.options.tls) {
    auto tls = TlsServer::load(*site_.options.tls);
    if (!tls) return tls.error();
    tls_ = *std::move(tls);
  }
  wake_ = Fd(::eventfd(0, EFD_CLOEXEC));
  if (!wake_.valid()) return errno_error("make an event descriptor", errno);
  auto hangups = HangupWatch::start();
  if (!hangups) return hangups.error();
  hangups_ = *std::move(hangups);
  workers_ = std::make_unique<WorkerPool>(
      site_.options.most_connections,
      [this](AcceptedConnection connection) { serve(std::move(connection)); });
  acceptor_ = std::thread([this] { accept_all(); });
  return {};
}

void Server::accept_all() {
  while (true) {
    std::array<pollfd, 2> fds = {{{listener_->fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[1].revents != 0) return;
    Fd socket(::accept4(listener_->fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      admit(std::move(socket));
      continue;
    }
    // Anything else is the failed connection's own affair.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      site_.log.error("cannot accept a connection",
                      {{"error", errno_error("accept", errno).message}});
      (void)wait_for(wake_.get(), POLLIN, milliseconds(out_of_descriptors_pause));
    }
  }
}

void Server::admit(Fd socket) {
  AcceptedConnection connection{std::move(socket), {}};
  connection.peer = peer_of(connection.socket.get());
  connection.peer.tls = tls_ != nullptr;
  if (listener_->is_unix()) {
    if (site_.options.only_own_user && connection.peer.uid != ::geteuid()) return;
  } else {
    const int on = 1;
    ::setsockopt(connection.socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(connection.socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }
  if (workers_->submit(connection) == WorkerPool::Submit::taken) return;
  // A connection that idles between two requests makes room for one that asks.
  if (live_.close_one_idle()) {
    workers_->enqueue(std::move(connection));
  } else {
    answer_full(std::move(connection));
  }
}

void Server::answer_full(AcceptedConnection connection) {
  site_.log.warning("out of connections",
                    {{"limit", std::to_string(site_.options.most_connections)}});
  if (tls_) return;  // a handshake would take a thread
  SocketStream stream(make_plain_transport(std::move(connection.socket)));
  HttpSite impatient = site_;
  impatient.options.stall_time = milliseconds(0);
  HttpExchange::on(stream, connection.peer, impatient)
      ->refuse({ErrorCode::unavailable, "too many connections"}, 503);
  stream.linger(milliseconds(0));
}

void Server::serve(AcceptedConnection accepted) {
  SocketStream stream(tls_ ? tls_->accept(std::move(accepted.socket))
                           : make_plain_transport(std::move(accepted.socket)));
  const auto entry = live_.enter(stream);
  if (!entry) return;
  const auto http = HttpExchange::on(stream, accepted.peer, site_);
  milliseconds patience = site_.options.head_time;
  while (serve_one(*http, *entry, stream, patience) == HttpExchange::After::keep) {
    patience = site_.options.idle_time;
  }
}

HttpExchange::After Server::serve_one(HttpExchange& http, LiveConnections::Entry& entry,
                                      SocketStream& stream, milliseconds patience) {
  if (!entry.idle()) return HttpExchange::After::drop;
  const bool asked = !stream.ahead().empty() || came_in(stream.fill(patience));
  const std::stop_source stop = entry.busy();
  if (!asked) return HttpExchange::After::drop;
  const auto guard = hangups_->watch(stream.poll_fd(), stop);
  const auto after = http.serve(stop.get_token(), [&] { return entry.stopping(); });
  if (after == HttpExchange::After::upgrade) run_upgrade(http.upgraded(), entry, stream);
  if (after == HttpExchange::After::close || after == HttpExchange::After::upgrade) {
    stream.linger(entry.stopping() ? longest_goodbye_at_stop : longest_goodbye);
  }
  return after;
}

void Server::run_upgrade(const HttpResponse::Upgrade& upgrade, LiveConnections::Entry& entry,
                         SocketStream& stream) {
  try {
    if (entry.upgraded()) upgrade.run(stream);
  } catch (const std::exception& failure) {
    site_.log.error("an upgraded connection failed", {{"error", failure.what()}});
  } catch (...) {
    site_.log.error("an upgraded connection failed", {{"protocol", upgrade.protocol}});
  }
}

void Server::stop(milliseconds grace) {
  std::call_once(stopped_, [&] {
    if (!acceptor_.joinable()) return;
    const std::uint64_t one = 1;
    while (::write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
    acceptor_.join();
    listener_.reset();
    live_.stop(grace);
    workers_->join();
    hangups_.reset();
  });
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const HttpEndpoint& endpoint,
                                                       HttpServerOptions options,
                                                       HttpHandler handler, Log& log) {
  if (!options.error_answer) {
    options.error_answer = [](const Error& error) { return error_response(error); };
  }
  auto listener = Listener::open(endpoint);
  if (!listener) return listener.error();
  auto server =
      std::make_unique<Server>(*std::move(listener), std::move(options), std::move(handler), log);
  if (auto started = server->start(); !started) return started.error();
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace fuse
