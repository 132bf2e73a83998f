#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "guest/channel/frame.h"
#include "guest/channel/messages.h"
#include "guest/channel/sync.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

// Bytes as a guest or host might send them: never more than an error comes of it,
// and what is decoded survives another way through.
void decode_all(std::string_view bytes) {
  fuse::SyncScanner scanner;
  fuse::FrameDecoder decoder;
  const std::size_t half = bytes.size() / 2;
  for (const std::string_view part : {bytes.substr(0, half), bytes.substr(half)}) {
    scanner.feed(part);
    while (auto piece = scanner.next()) {
      if (piece->nonce) {
        decoder.reset();
        continue;
      }
      decoder.feed(piece->bytes);
      while (true) {
        const auto frame = decoder.next();
        if (!frame || !*frame) break;
        require((*frame)->payload.size() <= fuse::most_frame_payload);
        (void)fuse::parse_operation((*frame)->payload);
        (void)fuse::parse_hello((*frame)->payload);
        (void)fuse::parse_guest_exec_result((*frame)->payload);
        (void)fuse::parse_resize((*frame)->payload);
        (void)fuse::parse_error_text((*frame)->payload);
      }
    }
  }
}

// The bytes as a payload: encoded, free of the mark, and the same when decoded.
void encode_and_back(std::string_view bytes) {
  const fuse::Frame frame{.type = fuse::FrameType::data,
                          .stream = 7,
                          .payload = std::string(bytes.substr(0, fuse::most_frame_payload))};
  std::string encoded;
  fuse::append_frame(encoded, frame);
  require(encoded.find(fuse::sync_mark) == std::string::npos);
  require(fuse::sync_mark_tail(encoded) == 0);
  fuse::FrameDecoder decoder;
  decoder.feed(encoded);
  std::string payload;
  while (true) {
    const auto next = decoder.next();
    require(next.has_value());
    if (!*next) break;
    payload += (*next)->payload;
  }
  require(payload == frame.payload);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  decode_all(bytes);
  encode_and_back(bytes);
  return 0;
}
