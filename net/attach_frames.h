#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "orchestrator/api/attach_payloads.h"
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

}  // namespace fuse
