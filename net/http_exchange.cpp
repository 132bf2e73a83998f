#include "net/http_exchange.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <exception>
#include <utility>

#include "base/text.h"
#include "net/http_date.h"
#include "net/httplib_sink_detail.h"
#include "net/httplib_stream_detail.h"
#include "net/request_check.h"
#include "orchestrator/api/json.h"

namespace fuse {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Handled = httplib::Server::HandlerResponse;

// What httplib adds to a request's fields.
constexpr std::array<std::string_view, 4> additions = {"REMOTE_ADDR", "REMOTE_PORT", "LOCAL_ADDR",
                                                       "LOCAL_PORT"};

// The one path httplib is told: the routes are the handler's own.
constexpr const char* any_path = "/";

bool has_no_body(int status) {
  return status == 204 || status == 304 || status / 100 == 1;
}

Error too_large(std::size_t most) {
  return {ErrorCode::payload_too_large,
          cat("request body exceeds the ", most, " byte limit for this endpoint")};
}

void keep_framing_alone(httplib::Request& request, const BodyFraming& framing,
                        const HttpHeaders& headers) {
  request.path = std::string(any_path);
  request.params.clear();
  request.ranges.clear();
  request.headers.clear();
  // A length always, or httplib reads up to the end of the connection; of a chunked
  // body it looks at the encoding first.
  request.set_header("Content-Length", std::to_string(framing.length));
  if (framing.chunked) request.set_header("Transfer-Encoding", "chunked");
  const std::string expects = headers.get("Expect").value_or("");
  const bool knows_100 = request.version != "HTTP/1.0";
  if (knows_100 && framing.has_body() && equal_ignoring_case(expects, "100-continue")) {
    request.set_header("Expect", "100-continue");
  }
}

// httplib's server for one connection.  It keeps its settings and the request at
// hand in members, so each connection has one.
class HttplibExchange final : public HttpExchange, private httplib::Server {
 public:
  HttplibExchange(SocketStream& connection, const HttpPeer& peer, const HttpSite& site);

  After serve(std::stop_token stop, const std::function<bool()>& stopping) override;
  [[nodiscard]] const HttpResponse::Upgrade& upgraded() const override { return *turn_.upgrade; }
  void refuse(const Error& error, int status) override;

 private:
  // One request and its answer.
  struct Turn {
    std::optional<HttpResponse> early{};  // an answer that does not wait for the body
    HttpRequest request{};
    std::size_t most_body = 0;
    bool understood = false;  // its head
    bool http_1_0 = false;
    bool wants_close = false;
    bool read_whole = false;  // nothing of it is left on the connection
    bool answered = false;    // in our words, not in httplib's
    bool keep = false;
    std::function<bool()> stopping{};
    std::optional<HttpResponse::Upgrade> upgrade{};
  };

  const HttpServerOptions& options() const { return site_.options; }
  After run();
  void look_at(httplib::Request& incoming);
  std::optional<HttpResponse> early_answer(const Result<BodyFraming>& framing);
  HttpResponse refusal(const Error& error, int status) const;
  void answer(httplib::Response& out);
  void put(HttpResponse response, httplib::Response& out);
  void put_body(HttpResponse& response, httplib::Response& out);
  HttpResponse explain(const httplib::Request& incoming, int status) const;
  void report(const std::exception_ptr& failure, std::string_view what) const;
  void complete(httplib::Response& out) const;
  After write_upgrade_head();

  SocketStream& connection_;
  const HttpPeer& peer_;
  const HttpSite& site_;
  HttplibStream wire_;
  Turn turn_{};
};

HttplibExchange::HttplibExchange(SocketStream& connection, const HttpPeer& peer,
                                 const HttpSite& site)
    : connection_(connection),
      peer_(peer),
      site_(site),
      wire_(connection, site.options.stall_time) {
  svr_sock_ = 0;  // any socket: httplib breaks streams off while it listens on none
  httplib::Headers standing;
  for (const auto& [name, value] : options().headers.fields()) standing.emplace(name, value);
  set_default_headers(std::move(standing));

  set_expect_100_continue_handler([this](const httplib::Request&, httplib::Response& out) {
    if (!turn_.early) return static_cast<int>(httplib::StatusCode::Continue_100);
    put(*std::exchange(turn_.early, std::nullopt), out);
    return out.status;
  });
  set_pre_routing_handler([this](const httplib::Request&, httplib::Response& out) {
    if (!turn_.early) return Handled::Unhandled;
    put(*std::exchange(turn_.early, std::nullopt), out);
    return Handled::Handled;
  });
  const auto at_once = [this](const httplib::Request& incoming, httplib::Response& out) {
    turn_.request.body = incoming.body;
    answer(out);
  };
  const auto after_body = [this](const httplib::Request&, httplib::Response& out,
                                 const httplib::ContentReader& read) {
    const bool whole = read([this](const char* bytes, std::size_t size) {
      turn_.request.body.append(bytes, size);
      return true;
    });
    if (whole) answer(out);
  };
  Get(any_path, at_once).Options(any_path, at_once);
  Post(any_path, after_body).Put(any_path, after_body);
  Patch(any_path, after_body).Delete(any_path, after_body);
  set_exception_handler(
      [this](const httplib::Request&, httplib::Response& out, const std::exception_ptr& failure) {
        report(failure, "a request failed");
        put(refusal({ErrorCode::internal, "internal error"}, 500), out);
      });
  set_error_handler([this](const httplib::Request& incoming, httplib::Response& out) {
    if (!turn_.answered) put(explain(incoming, out.status), out);
    return Handled::Handled;
  });
  set_post_routing_handler(
      [this](const httplib::Request&, httplib::Response& out) { complete(out); });
}

HttpExchange::After HttplibExchange::serve(std::stop_token stop,
                                           const std::function<bool()>& stopping) {
  turn_ = {};
  turn_.request.stop = std::move(stop);
  turn_.stopping = stopping;
  wire_.set_deadline(steady_clock::now() + options().head_time);
  switch (wire_.take_head(options().most_head)) {
    case HttplibStream::Input::ready:
      return run();
    case HttplibStream::Input::too_large:
      refuse({ErrorCode::invalid_argument,
              cat("request head exceeds the ", options().most_head, " byte limit")},
             431);
      return After::close;
    case HttplibStream::Input::end:
    case HttplibStream::Input::broken:
    case HttplibStream::Input::timed_out:
      break;
  }
  return After::drop;
}

HttpExchange::After HttplibExchange::run() {
  try {
    bool ignored = false;  // httplib's own view of whether to close
    const bool whole = process_request(wire_, peer_.ip, peer_.port, {}, 0, false, ignored,
                                       [this](httplib::Request& incoming) { look_at(incoming); });
    turn_.request = {};  // its body may be large, and the connection may idle now
    if (turn_.upgrade) return write_upgrade_head();
    return whole && wire_.flush() && turn_.keep ? After::keep : After::close;
  } catch (...) {
    report(std::current_exception(), "a request's stream failed");
  }
  return After::close;
}

void HttplibExchange::refuse(const Error& error, int status) {
  turn_ = {};
  turn_.early = refusal(error, status);
  wire_.set_head("GET / HTTP/1.1\r\n\r\n");
  (void)run();
}

// The head is read.  httplib keeps what delimits the body and nothing else, lest
// it take forms apart or cut ranges out of answers.
void HttplibExchange::look_at(httplib::Request& incoming) {
  HttpHeaders headers = fields_of(incoming.headers);
  for (const std::string_view name : additions) headers.remove(name);
  turn_.understood = true;
  turn_.http_1_0 = incoming.version == "HTTP/1.0";
  turn_.wants_close = turn_.http_1_0 || headers.has_token("Connection", "close");
  auto framing = check_request_fields(headers, turn_.http_1_0);
  auto target = origin_form(incoming.target);
  if (!target) framing = Error{ErrorCode::invalid_argument, "malformed HTTP message: its target"};
  turn_.read_whole = framing && !framing->has_body();
  keep_framing_alone(incoming, framing ? *framing : BodyFraming{}, headers);

  HttpRequest request =
      make_request(incoming.method, std::move(target).value_or("/"), {}, std::move(headers));
  request.peer = peer_;
  request.stop = turn_.request.stop;
  turn_.request = std::move(request);
  if (!turn_.early) turn_.early = early_answer(framing);
  const bool forever = options().body_time == milliseconds(0);
  wire_.set_deadline(forever ? steady_clock::time_point::max()
                             : steady_clock::now() + options().body_time);
}

std::optional<HttpResponse> HttplibExchange::early_answer(const Result<BodyFraming>& framing) {
  if (!framing) return refusal(framing.error(), http_status(framing.error().code));
  const HttpRequest& request = turn_.request;
  if (options().before_body) {
    if (auto early = options().before_body(request)) return early;
  }
  turn_.most_body = options().body_limit ? options().body_limit(request) : options().most_body;
  set_payload_max_length(turn_.most_body);
  if (framing->length > turn_.most_body) return refusal(too_large(turn_.most_body), 413);
  const auto expects = request.headers.get("Expect");
  if (expects && framing->has_body() && !equal_ignoring_case(*expects, "100-continue")) {
    return refusal({ErrorCode::invalid_argument, "unknown expectation"}, 417);
  }
  return std::nullopt;
}

HttpResponse HttplibExchange::refusal(const Error& error, int status) const {
  HttpResponse response = options().error_answer(error);
  response.status = status;
  return response;
}

// What httplib itself has refused, in the service's form.
HttpResponse HttplibExchange::explain(const httplib::Request& incoming, int status) const {
  const auto invalid = [&](std::string_view what, int as) {
    return refusal({ErrorCode::invalid_argument, std::string(what)}, as);
  };
  if (!turn_.understood) {
    const bool other = incoming.version.starts_with("HTTP/") && incoming.version != "HTTP/1.1" &&
                       incoming.version != "HTTP/1.0";
    if (!other) return invalid("malformed HTTP message", status);
    return refusal({ErrorCode::unimplemented, "only HTTP/1.1 and HTTP/1.0 are spoken here"}, 505);
  }
  if (status == 413) return refusal(too_large(turn_.most_body), status);
  switch (wire_.last_read()) {
    case HttplibStream::Input::timed_out:
      return invalid("request body did not arrive in time", 408);
    case HttplibStream::Input::end:
    case HttplibStream::Input::broken:
      return invalid("request body shorter than Content-Length", status);
    case HttplibStream::Input::ready:
    case HttplibStream::Input::too_large:
      break;
  }
  return invalid("malformed HTTP message", status);
}

void HttplibExchange::answer(httplib::Response& out) {
  turn_.read_whole = true;
  put(site_.handler(turn_.request), out);
}

void HttplibExchange::put(HttpResponse response, httplib::Response& out) {
  turn_.answered = true;
  if (response.upgrade) {
    // Its head is a fixed one.
    turn_.upgrade = std::move(response.upgrade);
    wire_.mute();
    out.status = 101;
    return;
  }
  turn_.keep = turn_.read_whole && !turn_.wants_close &&
               !response.headers.has_token("Connection", "close") && turn_.stopping &&
               !turn_.stopping();
  out.status = response.status;
  response.headers.remove("Connection");
  response.headers.remove("Content-Length");
  response.headers.remove("Transfer-Encoding");
  const auto& fields = response.headers.fields();
  for (const auto& [name, value] : fields) out.headers.erase(name);
  // Of one name, the table gives the last first.
  std::for_each(fields.rbegin(), fields.rend(),
                [&](const auto& field) { out.set_header(field.first, field.second); });
  if (!has_no_body(response.status)) put_body(response, out);
}

void HttplibExchange::put_body(HttpResponse& response, httplib::Response& out) {
  if (!response.stream) {
    out.body = std::move(response.body);
    return;
  }
  auto run = [this, stream = std::move(response.stream)](std::size_t, httplib::DataSink& sink) {
    if (!wire_.flush()) return false;  // the head
    HttplibSink to(sink, wire_, turn_.request.stop);
    stream(to);
    return to.finish();
  };
  const std::string type =
      response.headers.get("Content-Type").value_or("application/octet-stream");
  out.headers.erase("Content-Type");
  if (turn_.http_1_0) {
    out.set_content_provider(type, std::move(run));
  } else {
    out.set_chunked_content_provider(type, std::move(run));
  }
}

// Called when httplib's head of the answer is complete.
void HttplibExchange::complete(httplib::Response& out) const {
  for (const char* const name : {"Keep-Alive", "Connection", "Accept-Ranges"}) {
    out.headers.erase(name);
  }
  if (has_no_body(out.status)) out.headers.erase("Content-Length");
  // httplib leaves it out when the answer comes before a 100 Continue.
  if (!out.body.empty() && !out.has_header("Content-Length")) {
    out.set_header("Content-Length", std::to_string(out.body.size()));
  }
  if (!turn_.keep) out.set_header("Connection", "close");
  out.set_header("Date", http_date(std::time(nullptr)));
}

HttpExchange::After HttplibExchange::write_upgrade_head() {
  const std::string head =
      cat("HTTP/1.1 101 Switching Protocols\r\nUpgrade: ", turn_.upgrade->protocol,
          "\r\nConnection: Upgrade\r\n\r\n");
  return connection_.write_within(head, options().stall_time) ? After::upgrade : After::close;
}

void HttplibExchange::report(const std::exception_ptr& failure, std::string_view what) const {
  const std::string& path = turn_.request.path;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& known) {
    site_.log.error(what, {{"path", path}, {"error", known.what()}});
  } catch (...) {
    site_.log.error(what, {{"path", path}});
  }
}

}  // namespace

std::unique_ptr<HttpExchange> HttpExchange::on(SocketStream& connection, const HttpPeer& peer,
                                               const HttpSite& site) {
  return std::make_unique<HttplibExchange>(connection, peer, site);
}

}  // namespace fuse
