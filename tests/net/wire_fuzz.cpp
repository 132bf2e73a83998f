// Feeds the parsers of the network room with any bytes.  The first byte picks the
// parser, the second how the rest is cut into pieces.  Beyond not falling over,
// what a parser makes of a stream must not depend on how the stream was cut.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "net/attach_frames.h"
#include "net/attach_session.h"
#include "net/chunked.h"
#include "net/http.h"
#include "net/http_head.h"
#include "net/sse.h"

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

std::string chunks_of(const std::vector<std::string_view>& pieces) {
  ChunkedDecoder decoder;
  std::string seen;
  for (const std::string_view piece : pieces) {
    const auto step = decoder.feed(piece, seen);
    if (!step) return "!";
    must(step->used <= piece.size());
    if (step->done) return seen + ".";
  }
  return seen;
}

void check_heads(std::string_view bytes) {
  const auto end = head_end(bytes);
  const std::string_view head = bytes.substr(0, end.value_or(bytes.size()));
  if (const auto request = parse_request_head(head)) {
    (void)framing_of(request->headers);
    // Written again, it reads the same.
    const auto again = parse_request_head(encode_head(
        request->method + " " + request->target + (request->http_1_0 ? " HTTP/1.0" : " HTTP/1.1"),
        request->headers));
    must(again.has_value());
    must(again->headers.fields() == request->headers.fields());
    must(again->target == request->target);
    const HttpRequest value = make_request(request->method, request->target);
    must(Query(value.query.encode()).items() == value.query.items());
    (void)parse_attach_query(value.query);
  }
  if (const auto response = parse_response_head(head)) (void)framing_of(response->headers);
  (void)parse_url(bytes);
  (void)error_of_answer(500, bytes);
}

}  // namespace
}  // namespace fuse

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto pieces = fuse::cut(bytes, 1 + data[1] % 64U);
  const std::vector<std::string_view> whole = {bytes};
  switch (data[0] % 4) {
    case 0:
      fuse::must(fuse::frames_of(pieces) == fuse::frames_of(whole));
      break;
    case 1:
      fuse::must(fuse::events_of(pieces) == fuse::events_of(whole));
      break;
    case 2:
      fuse::must(fuse::chunks_of(pieces) == fuse::chunks_of(whole));
      break;
    default:
      fuse::check_heads(bytes);
      break;
  }
  return 0;
}
