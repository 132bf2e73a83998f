#include "net/http_exchange.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/text.h"
#include "net/chunked.h"

namespace fuse {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds at_once{0};

Patience until(steady_clock::time_point deadline) {
  if (deadline == steady_clock::time_point::max()) return std::nullopt;
  const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
  return std::max(left, at_once);
}

RefusedRequest refused(Error error) {
  const int status = status_of(error.code);
  return {std::move(error), status};
}

bool has_no_body(int status) {
  return status == 204 || status == 304 || status / 100 == 1;
}

std::string status_line(int status) {
  return cat("HTTP/1.1 ", status, " ", reason_phrase(status));
}

// "Sun, 06 Nov 1994 08:49:37 GMT", independent of the locale.
std::string http_date() {
  constexpr std::string_view days = "SunMonTueWedThuFriSat";
  constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  const auto two = [](int n) { return cat(n / 10, n % 10); };
  const auto name = [](std::string_view names, int n) {
    return names.substr(static_cast<std::size_t>(n) * 3, 3);
  };
  return cat(name(days, utc.tm_wday), ", ", two(utc.tm_mday), " ", name(months, utc.tm_mon), " ",
             utc.tm_year + 1900, " ", two(utc.tm_hour), ":", two(utc.tm_min), ":", two(utc.tm_sec),
             " GMT");
}

// An answer's stream on a connection: chunked, or bare and ended by closing.
class ConnectionStream final : public HttpStream {
 public:
  ConnectionStream(SocketStream& stream, bool chunked, milliseconds stall, std::stop_token stop)
      : stream_(stream), chunked_(chunked), stall_(stall), stop_(std::move(stop)) {}

  bool write(std::string_view bytes) override {
    if (stop_.stop_requested()) whole_ = false;
    if (!whole_ || bytes.empty()) return whole_;
    const auto sent = chunked_ ? stream_.write_within(encode_chunk(bytes), stall_)
                               : stream_.write_within(bytes, stall_);
    whole_ = sent.has_value();
    return whole_;
  }
  [[nodiscard]] std::stop_token stop() const override { return stop_; }

  // The end mark; false when the answer was cut short and must not look whole.
  bool finish() {
    if (!whole_ || stop_.stop_requested()) return false;
    return !chunked_ || stream_.write_within(last_chunk, stall_).has_value();
  }

 private:
  SocketStream& stream_;
  bool chunked_;
  milliseconds stall_;
  std::stop_token stop_;
  bool whole_ = true;
};

}  // namespace

Error body_too_large(std::size_t most) {
  return {ErrorCode::payload_too_large,
          cat("request body exceeds the ", most, " byte limit for this endpoint")};
}

bool HttpExchange::wait_for_request(milliseconds patience) {
  if (!stream_.ahead().empty()) return true;
  const auto got = stream_.fill(patience);
  return got && got->kind == ReadOutcome::Kind::bytes;
}

HeadOutcome HttpExchange::read_head() {
  const auto deadline = steady_clock::now() + options_.head_time;
  std::string& ahead = stream_.ahead();
  std::size_t looked = 0;
  std::optional<std::size_t> end;
  while (true) {
    // Blank lines before a request are left over from sloppy clients.
    while (looked == 0 && ahead.starts_with("\r\n")) ahead.erase(0, 2);
    end = head_end(ahead, looked);
    if (end.value_or(ahead.size()) > options_.most_head) {
      return RefusedRequest{{ErrorCode::invalid_argument,
                             cat("request head exceeds the ", options_.most_head, " byte limit")},
                            431};
    }
    if (end) break;
    looked = ahead.size();
    const auto got = stream_.fill(until(deadline));
    if (!got || got->kind != ReadOutcome::Kind::bytes) return NoRequest{};
  }
  auto head = parse_request_head(std::string_view(ahead).substr(0, *end));
  ahead.erase(0, *end);
  if (!head) {
    if (head.error().code == ErrorCode::unimplemented) return RefusedRequest{head.error(), 505};
    return refused(head.error());
  }
  const auto framing = framing_of(head->headers);
  if (!framing) return refused(framing.error());

  IncomingRequest incoming;
  incoming.framing = *framing;
  incoming.body_read = framing->kind == BodyFraming::Kind::none;
  incoming.http_1_0 = head->http_1_0;
  incoming.keep_alive = !head->http_1_0 && !head->headers.has_token("Connection", "close");
  incoming.request =
      make_request(std::move(head->method), std::move(head->target), {}, std::move(head->headers));
  incoming.request.peer = peer_;
  if (incoming.http_1_0 && framing->kind == BodyFraming::Kind::chunked) {
    return refused({ErrorCode::invalid_argument, "HTTP/1.0 has no chunked bodies"});
  }
  return incoming;
}

std::optional<RefusedRequest> HttpExchange::read_body(IncomingRequest& incoming, std::size_t most) {
  if (incoming.body_read) return std::nullopt;
  if (incoming.framing.length > most) return refused(body_too_large(most));
  if (const auto expect = incoming.request.headers.get("Expect")) {
    if (!equal_ignoring_case(*expect, "100-continue")) {
      return RefusedRequest{{ErrorCode::invalid_argument, "unknown expectation"}, 417};
    }
    // A client that sends its body all the same needs no telling.
    const bool told = !stream_.ahead().empty() ||
                      stream_.write_within("HTTP/1.1 100 Continue\r\n\r\n", options_.stall_time);
    if (!told) return refused({ErrorCode::unreachable, "the client is gone"});
  }
  const bool chunked = incoming.framing.kind == BodyFraming::Kind::chunked;
  auto refusal = chunked ? read_chunked(incoming, most) : read_length(incoming);
  incoming.body_read = !refusal;
  return refusal;
}

steady_clock::time_point HttpExchange::body_deadline() const {
  if (options_.body_time == at_once) return steady_clock::time_point::max();
  return steady_clock::now() + options_.body_time;
}

std::optional<RefusedRequest> HttpExchange::more_body(steady_clock::time_point deadline) {
  const Patience left = until(deadline);
  const auto got = stream_.fill(std::min(left.value_or(options_.stall_time), options_.stall_time));
  if (!got) return refused(got.error());
  if (got->kind == ReadOutcome::Kind::bytes) return std::nullopt;
  if (got->kind == ReadOutcome::Kind::end) {
    return refused({ErrorCode::invalid_argument, "request body shorter than Content-Length"});
  }
  return RefusedRequest{{ErrorCode::invalid_argument, "request body did not arrive in time"}, 408};
}

std::optional<RefusedRequest> HttpExchange::read_length(IncomingRequest& incoming) {
  const auto length = static_cast<std::size_t>(incoming.framing.length);
  const auto deadline = body_deadline();
  std::string& ahead = stream_.ahead();
  while (ahead.size() < length) {
    if (auto refusal = more_body(deadline)) return refusal;
  }
  if (ahead.size() == length) {
    incoming.request.body = std::exchange(ahead, {});
  } else {
    incoming.request.body = ahead.substr(0, length);
    ahead.erase(0, length);
  }
  return std::nullopt;
}

std::optional<RefusedRequest> HttpExchange::read_chunked(IncomingRequest& incoming,
                                                         std::size_t most) {
  const auto deadline = body_deadline();
  ChunkedDecoder decoder;
  std::string& ahead = stream_.ahead();
  while (true) {
    const auto step = decoder.feed(ahead, incoming.request.body);
    if (!step) return refused(step.error());
    ahead.erase(0, step->used);
    if (incoming.request.body.size() > most) return refused(body_too_large(most));
    if (step->done) return std::nullopt;
    if (auto refusal = more_body(deadline)) return refusal;
  }
}

HttpHeaders HttpExchange::complete_headers(const HttpResponse& response) const {
  HttpHeaders headers;
  headers.add("Date", http_date());
  for (const auto& [name, value] : options_.headers.fields()) {
    if (!response.headers.has(name)) headers.add(name, value);
  }
  for (const auto& [name, value] : response.headers.fields()) headers.add(name, value);
  headers.remove("Content-Length");
  headers.remove("Transfer-Encoding");
  return headers;
}

HttpExchange::After HttpExchange::write(const IncomingRequest& incoming, HttpResponse response,
                                        std::stop_token stop) {
  HttpHeaders headers = complete_headers(response);
  const bool streamed = response.stream != nullptr && !has_no_body(response.status);
  const bool keep =
      incoming.keep_alive && incoming.body_read && !headers.has_token("Connection", "close");
  if (streamed && !incoming.http_1_0) headers.add("Transfer-Encoding", "chunked");
  if (!streamed && !has_no_body(response.status)) {
    headers.add("Content-Length", std::to_string(response.body.size()));
  }
  if (!keep) headers.set("Connection", "close");
  std::string head = encode_head(status_line(response.status), headers);
  const After after = streamed ? write_stream(incoming, response, std::move(head), std::move(stop))
                               : write_body(incoming, response, std::move(head));
  return keep ? after : After::close;
}

HttpExchange::After HttpExchange::write_body(const IncomingRequest& incoming,
                                             const HttpResponse& response, std::string head) {
  // Head and body in one go: two small writes would wait for each other's ack.
  if (incoming.request.method != "HEAD" && !has_no_body(response.status)) head += response.body;
  const auto sent = stream_.write_within(head, options_.stall_time);
  return sent ? After::keep : After::close;
}

HttpExchange::After HttpExchange::write_stream(const IncomingRequest& incoming,
                                               const HttpResponse& response, std::string head,
                                               std::stop_token stop) {
  if (!stream_.write_within(head, options_.stall_time)) return After::close;
  if (incoming.request.method == "HEAD") return After::keep;
  ConnectionStream out(stream_, !incoming.http_1_0, options_.stall_time, std::move(stop));
  response.stream(out);
  return out.finish() ? After::keep : After::close;
}

void HttpExchange::refuse(const RefusedRequest& refusal) {
  HttpResponse response = options_.error_answer(refusal.error);
  response.status = refusal.status;
  IncomingRequest nothing;
  nothing.keep_alive = false;
  (void)write(nothing, std::move(response), {});
}

Result<void> HttpExchange::write_upgrade_head(const std::string& protocol) {
  const HttpHeaders headers{{"Upgrade", protocol}, {"Connection", "Upgrade"}};
  return stream_.write_within(encode_head(status_line(101), headers), options_.stall_time);
}

}  // namespace fuse
