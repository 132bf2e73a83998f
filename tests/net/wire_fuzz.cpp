// Feeds the network room with any bytes: frames, events, a whole connection of a
// server, the answer to an upgrade.  The first byte picks which, the second how the
// rest is cut into pieces.  Beyond not falling over, what is made of a stream must
// not depend on how the stream was cut.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/attach_frames.h"
#include "net/attach_session.h"
#include "net/http.h"
#include "net/http_exchange.h"
#include "net/sse.h"
#include "net/upgrade_call.h"
#include "net/url.h"
#include "orchestrator/api/json.h"
#include "tests/net/memory_transport.h"

namespace fuse {
namespace {

void must(bool held) {
  if (!held) std::abort();
}

std::vector<std::string_view> cut(std::string_view bytes, std::size_t piece) {
  std::vector<std::string_view> pieces;
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    pieces.push_back(bytes.substr(at, piece));
  return pieces;
}

// What a parser saw, as one text to compare.
std::string frames_of(const std::vector<std::string_view>& pieces) {
  AttachDecoder decoder;
  std::string seen;
  for (const std::string_view piece : pieces) {
    decoder.feed(piece);
    while (true) {
      const auto frame = decoder.next();
      if (!frame) return seen + "!";
      if (!*frame) break;
      must((*frame)->payload.size() <= most_attach_payload);
      seen += encode_attach_frame(**frame);
      (void)parse_resize((*frame)->payload);
      (void)parse_exit((*frame)->payload);
    }
  }
  return seen;
}

std::string events_of(const std::vector<std::string_view>& pieces) {
  SseParser parser;
  std::string seen;
  for (const std::string_view piece : pieces) {
    const auto events = parser.feed(piece);
    if (!events) return "!";
    for (const SseEvent& event : *events) seen += encode_sse(event);
  }
  return seen + parser.last_id();
}

// Everything about a request that must not depend on how it came.
std::string describe(const HttpRequest& request) {
  std::string text = request.method + " " + request.target + "\n";
  for (const auto& [name, value] : request.headers.fields()) {
    must(name.find_first_of("\r\n: ") == std::string::npos);
    must(value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
    text += name + ": " + value + "\n";
  }
  const HttpRequest again = make_request(request.method, request.target);
  must(again.path == request.path);
  must(Query(again.query.encode()).items() == again.query.items());
  (void)parse_attach_query(request.query);
  return text + request.body + "\n";
}

// The server's side of a connection on which these bytes come: the requests it
// saw and what it said.
std::string served(const std::vector<std::string_view>& pieces) {
  NullLog log;
  std::string seen;
  std::string written;
  HttpSite site{.options = {}, .handler = {}, .log = log};
  site.options.most_head = 4096;
  site.options.most_body = 1024;
  site.options.error_answer = text_error_response;
  site.handler = [&](const HttpRequest& request) {
    must(request.body.size() <= site.options.most_body);
    seen += describe(request);
    HttpResponse response = text_response(200, request.target);
    if (request.path == "/stream") {
      response.stream = [&](HttpStream& out) { must(out.write(request.target)); };
    }
    return response;
  };
  SocketStream stream(std::make_unique<MemoryTransport>(pieces, written));
  const HttpPeer peer;
  const auto exchange = HttpExchange::on(stream, peer, site);
  while (exchange->serve({}, [] { return false; }) == HttpExchange::After::keep) {
  }
  // The one thing that differs between two runs is the time.
  constexpr std::string_view date = "\r\nDate: ";
  for (auto at = written.find(date); at != std::string::npos; at = written.find(date, at)) {
    written.erase(at, written.find("\r\n", at + 2) - at);
  }
  return seen + written;
}

// The client's side of an upgrade that is answered with these bytes.
std::string answered(const std::vector<std::string_view>& pieces) {
  constexpr std::size_t most_body = 512;
  std::string written;
  SocketStream stream(std::make_unique<MemoryTransport>(pieces, written));
  const auto reply = ask_for_upgrade(stream, {.method = "GET",
                                              .target = "/",
                                              .headers = {{"Host", "x"}},
                                              .most_body = most_body,
                                              .timeout = std::chrono::minutes(1)});
  if (!reply) return reply.error().message;
  must(reply->body.size() <= most_body);
  std::string seen = std::to_string(reply->status);
  for (const auto& [name, value] : reply->headers.fields()) seen += "\n" + name + ": " + value;
  return seen + "\n" + reply->body;
}

void check_texts(std::string_view bytes) {
  (void)parse_url(bytes);
  (void)parse_error(500, bytes);
}

}  // namespace
}  // namespace fuse

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto pieces = fuse::cut(bytes, 1 + data[1] % 64U);
  const auto whole = fuse::cut(bytes, size);
  switch (data[0] % 4) {
    case 0:
      fuse::must(fuse::frames_of(pieces) == fuse::frames_of(whole));
      break;
    case 1:
      fuse::must(fuse::events_of(pieces) == fuse::events_of(whole));
      break;
    case 2:
      fuse::must(fuse::served(pieces) == fuse::served(whole));
      break;
    default:
      fuse::must(fuse::answered(pieces) == fuse::answered(whole));
      fuse::check_texts(bytes);
      break;
  }
  return 0;
}
