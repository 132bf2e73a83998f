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

Error internal_error() {
  return {ErrorCode::internal, "internal error"};
}

class Server final : public HttpServer {
 public:
  Server(Listener listener, HttpServerOptions options, HttpHandler handler, Log& log)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        log_(log),
        listener_(std::move(listener)),
        port_(listener_->port()),
        place_(listener_->is_unix()
                   ? cat("unix:", listener_->address())
                   : cat(options_.tls ? "https://" : "http://", listener_->address())) {}
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
  HttpExchange::After answer(HttpExchange& http, LiveConnections::Entry& entry,
                             SocketStream& stream, IncomingRequest incoming);
  HttpResponse call(const HttpRequest& request);
  void run_upgrade(HttpExchange& http, LiveConnections::Entry& entry, SocketStream& stream,
                   const HttpResponse::Upgrade& upgrade);

  HttpServerOptions options_;
  HttpHandler handler_;
  Log& log_;
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
  if (options_.tls) {
    auto tls = TlsServer::load(*options_.tls);
    if (!tls) return tls.error();
    tls_ = *std::move(tls);
  }
  wake_ = Fd(::eventfd(0, EFD_CLOEXEC));
  if (!wake_.valid()) return errno_error("make an event descriptor", errno);
  auto hangups = HangupWatch::start();
  if (!hangups) return hangups.error();
  hangups_ = *std::move(hangups);
  workers_ = std::make_unique<WorkerPool>(
      options_.most_connections,
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
      log_.error("cannot accept a connection", {{"error", errno_error("accept", errno).message}});
      (void)wait_for(wake_.get(), POLLIN, milliseconds(out_of_descriptors_pause));
    }
  }
}

void Server::admit(Fd socket) {
  AcceptedConnection connection{std::move(socket), {}};
  connection.peer = peer_of(connection.socket.get());
  connection.peer.tls = tls_ != nullptr;
  if (listener_->is_unix()) {
    if (options_.only_own_user && connection.peer.uid != ::geteuid()) return;
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
  log_.warning("out of connections", {{"limit", std::to_string(options_.most_connections)}});
  if (tls_) return;  // a handshake would take a thread
  SocketStream stream(make_plain_transport(std::move(connection.socket)));
  HttpServerOptions impatient = options_;
  impatient.stall_time = milliseconds(0);
  HttpExchange http(stream, connection.peer, impatient);
  http.refuse({{ErrorCode::unavailable, "too many connections"}, 503});
  stream.linger(milliseconds(0));
}

void Server::serve(AcceptedConnection accepted) {
  SocketStream stream(tls_ ? tls_->accept(std::move(accepted.socket))
                           : make_plain_transport(std::move(accepted.socket)));
  const auto entry = live_.enter(stream);
  if (!entry) return;
  HttpExchange http(stream, accepted.peer, options_);
  milliseconds patience = options_.head_time;
  while (serve_one(http, *entry, stream, patience) == HttpExchange::After::keep) {
    patience = options_.idle_time;
  }
}

HttpExchange::After Server::serve_one(HttpExchange& http, LiveConnections::Entry& entry,
                                      SocketStream& stream, milliseconds patience) {
  if (!entry.idle()) return HttpExchange::After::close;
  const bool asked = http.wait_for_request(patience);
  const std::stop_source stop = entry.busy();
  if (!asked) return HttpExchange::After::close;
  auto outcome = http.read_head();
  if (std::holds_alternative<NoRequest>(outcome)) return HttpExchange::After::close;
  auto after = HttpExchange::After::close;
  if (const auto* refused = std::get_if<RefusedRequest>(&outcome)) {
    http.refuse(*refused);
  } else {
    auto& incoming = std::get<IncomingRequest>(outcome);
    incoming.request.stop = stop.get_token();
    after = answer(http, entry, stream, std::move(incoming));
  }
  if (after == HttpExchange::After::close) {
    stream.linger(entry.stopping() ? longest_goodbye_at_stop : longest_goodbye);
  }
  return after;
}

HttpExchange::After Server::answer(HttpExchange& http, LiveConnections::Entry& entry,
                                   SocketStream& stream, IncomingRequest incoming) {
  const HttpRequest& request = incoming.request;
  try {
    if (options_.before_body) {
      if (auto early = options_.before_body(request)) {
        return http.write(incoming, *std::move(early), request.stop);
      }
    }
    const std::size_t most =
        options_.body_limit ? options_.body_limit(request) : options_.most_body;
    if (const auto refused = http.read_body(incoming, most)) {
      http.refuse(*refused);
      return HttpExchange::After::close;
    }
    const auto guard = hangups_->watch(stream.poll_fd(), entry.stop_source());
    HttpResponse response = call(request);
    if (response.upgrade) {
      run_upgrade(http, entry, stream, *response.upgrade);
      return HttpExchange::After::close;
    }
    if (entry.stopping()) incoming.keep_alive = false;
    return http.write(incoming, std::move(response), request.stop);
  } catch (const std::exception& failure) {
    log_.error("a request's stream failed", {{"path", request.path}, {"error", failure.what()}});
  } catch (...) {
    log_.error("a request's stream failed", {{"path", request.path}});
  }
  return HttpExchange::After::close;
}

HttpResponse Server::call(const HttpRequest& request) {
  try {
    return handler_(request);
  } catch (const std::exception& failure) {
    log_.error("a request failed", {{"path", request.path}, {"error", failure.what()}});
  } catch (...) {
    log_.error("a request failed", {{"path", request.path}});
  }
  return options_.error_answer(internal_error());
}

void Server::run_upgrade(HttpExchange& http, LiveConnections::Entry& entry, SocketStream& stream,
                         const HttpResponse::Upgrade& upgrade) {
  if (!http.write_upgrade_head(upgrade.protocol)) return;
  if (entry.upgraded()) upgrade.run(stream);
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
