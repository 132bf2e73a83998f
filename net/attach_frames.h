#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "orchestrator/api/streams.h"

namespace fuse {

inline constexpr std::string_view attach_protocol = "fuse-attach/1";
inline constexpr std::size_t most_attach_payload = 1U << 20U;

// Type, three zero bytes, length (big-endian), payload.  A payload beyond 1 MiB
// is cut into several frames, which no receiver can tell from one for the three
// streams of bytes; resize and exit are never that long.
std::string encode_attach_frame(const AttachFrame& frame);

// Takes the bytes of a connection in pieces of any size and gives out frames.
class AttachDecoder {
 public:
  void feed(std::string_view bytes);
  // The next whole frame of a known type; others are skipped. payload_too_large
  // for a length beyond 1 MiB, said as soon as the head is there; nothing more
  // can be read then.
  Result<std::optional<AttachFrame>> next();
  // Whether the bytes so far end in the middle of a frame.
  [[nodiscard]] bool inside_frame() const { return buffer_.size() > used_; }

 private:
  std::string buffer_{};
  std::size_t used_ = 0;
};

// The payloads of resize and exit.  Resize values above 65535 become 65535;
// nothing for one that is not JSON or has a value of 0 or less.
struct TerminalSize {
  std::int32_t rows = 0;
  std::int32_t cols = 0;
};
std::string encode_resize(const TerminalSize& size);
std::optional<TerminalSize> parse_resize(std::string_view payload);
std::string encode_exit(int exit_code);
std::optional<int> parse_exit(std::string_view payload);

}  // namespace fuse
