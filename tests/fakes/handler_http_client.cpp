#include "tests/fakes/handler_http_client.h"

#include <mutex>
#include <thread>
#include <utility>

namespace fuse {

namespace {

// Hands what a handler writes to the caller's sink.
class SinkStream final : public HttpStream {
 public:
  SinkStream(const HttpSink& sink, const std::stop_token& stop)
      : sink_(sink), on_stop_(stop, Request{source_}) {}
  bool write(std::string_view bytes) override {
    if (source_.stop_requested()) return false;
    if (sink_(bytes)) return true;
    source_.request_stop();
    return false;
  }
  [[nodiscard]] std::stop_token stop() const override { return source_.get_token(); }
  [[nodiscard]] bool stopped() const { return source_.stop_requested(); }

 private:
  struct Request {
    std::stop_source source;
    void operator()() { source.request_stop(); }
  };
  const HttpSink& sink_;
  std::stop_source source_;
  std::stop_callback<Request> on_stop_;
};

// The client's end of an upgraded connection, whose server's end is served by a
// thread of ours.
class ServedStream final : public ByteStream {
 public:
  ServedStream(std::unique_ptr<ByteStream> client, std::unique_ptr<ByteStream> server,
               std::function<void(ByteStream&)> run)
      : client_(std::move(client)),
        thread_([server = std::move(server), run = std::move(run)] { run(*server); }) {}
  ~ServedStream() override { client_->close(); }
  ServedStream(const ServedStream&) = delete;
  ServedStream& operator=(const ServedStream&) = delete;

  Result<ReadOutcome> read(std::span<char> into,
                           std::optional<std::chrono::milliseconds> timeout) override {
    return client_->read(into, timeout);
  }
  Result<void> write(std::string_view bytes) override { return client_->write(bytes); }
  void shutdown_write() override { client_->shutdown_write(); }
  void close() override { client_->close(); }
  [[nodiscard]] int poll_fd() const override { return client_->poll_fd(); }

 private:
  std::unique_ptr<ByteStream> client_;
  std::jthread thread_;
};

class HandlerClient final : public HttpClient {
 public:
  explicit HandlerClient(HttpHandler handler) : handler_(std::move(handler)) {}

  Result<HttpReply> send(const HttpCall& call) override {
    HttpResponse response = answer(call);
    HttpReply reply{.status = response.status, .headers = response.headers, .body = response.body};
    if (response.stream) {
      const HttpSink append = [&](std::string_view bytes) {
        reply.body += bytes;
        return true;
      };
      SinkStream out(append, call.stop);
      response.stream(out);
    }
    return reply;
  }

  Result<HttpStreamReply> stream(const HttpCall& call, const HttpSink& sink) override {
    HttpResponse response = answer(call);
    HttpStreamReply reply;
    reply.head = {.status = response.status, .headers = response.headers};
    if (!response.stream) {
      reply.head.body = response.body;
      return reply;
    }
    SinkStream out(sink, call.stop);
    response.stream(out);
    if (out.stopped()) reply.end = HttpStreamReply::End::stopped;
    return reply;
  }

  Result<HttpUpgradeReply> upgrade(const HttpCall& call, std::string_view protocol) override {
    HttpCall with = call;
    with.headers.set("Connection", "Upgrade");
    with.headers.set("Upgrade", std::string(protocol));
    HttpResponse response = answer(with);
    HttpUpgradeReply reply;
    reply.reply = {.status = response.status, .headers = response.headers, .body = response.body};
    if (!response.upgrade) return reply;
    auto pair = make_stream_pair();
    if (!pair) return pair.error();
    reply.stream = std::make_unique<ServedStream>(std::move(pair->first), std::move(pair->second),
                                                  std::move(response.upgrade->run));
    return reply;
  }

  [[nodiscard]] std::string place() const override { return "a handler"; }

 private:
  [[nodiscard]] HttpResponse answer(const HttpCall& call) const {
    HttpRequest request = make_request(call.method, call.target, call.body, call.headers);
    request.stop = call.stop;
    return handler_(request);
  }

  HttpHandler handler_;
};

}  // namespace

std::unique_ptr<HttpClient> make_handler_client(HttpHandler handler) {
  return std::make_unique<HandlerClient>(std::move(handler));
}

}  // namespace fuse
