#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

// The channel's frames, as values and as bytes: u8 type, u8 flags, u16 zero,
// u32 stream, u32 length, payload; all numbers big-endian.
namespace fuse {

enum class FrameType : std::uint8_t {
  hello = 1,   // guest to host on stream 0: who it is, as JSON
  open = 2,    // begins a stream: an operation, as JSON
  data = 3,    // bytes of a stream; the flags say which pipe
  window = 4,  // u32: so many more bytes of data may be sent on the stream
  close = 5,   // ends a stream: the result as JSON; from the host: cancelled
  error = 6,   // ends a stream: {"code", "message"}
  ping = 7,    // on stream 0; with the flag `pong` an answer
};

// Flags of a data frame: one of the pipes, and `end` when no more bytes follow.
inline constexpr std::uint8_t pipe_in = 0;
inline constexpr std::uint8_t pipe_out = 1;
inline constexpr std::uint8_t pipe_err = 2;
inline constexpr std::uint8_t pipe_control = 3;
inline constexpr std::uint8_t pipe_mask = 3;
inline constexpr std::uint8_t flag_end = 4;
// Flag of a ping frame.
inline constexpr std::uint8_t flag_pong = 1;

inline constexpr std::size_t frame_header_size = 12;
inline constexpr std::size_t most_frame_payload = 64U << 10U;
// How much data a stream may have under way in one direction before the other
// side grants more.
inline constexpr std::uint32_t stream_credit = 256U << 10U;

struct Frame {
  FrameType type = FrameType::ping;
  std::uint8_t flags = 0;
  std::uint32_t stream = 0;
  std::string payload{};
  bool operator==(const Frame&) const = default;
};

// Appends the frame's bytes.  The payload is at most most_frame_payload, and of
// every type but data it is ASCII; a data payload may be cut into several frames
// (the flag `end` stays on the last) and be followed by an empty pong, so that
// what is appended never holds the channel's sync mark nor ends in a part of it.
void append_frame(std::string& out, const Frame& frame);

std::string u32_payload(std::uint32_t number);
std::optional<std::uint32_t> parse_u32_payload(std::string_view payload);
std::string u64_payload(std::uint64_t number);
std::optional<std::uint64_t> parse_u64_payload(std::string_view payload);

// Bytes, as they come, into frames.  After an error (an unknown type, a length
// beyond the limit, a reserved byte that is not zero) it gives only that error
// until it is reset.
class FrameDecoder {
 public:
  void feed(std::string_view bytes);
  // The next whole frame, or nothing until more bytes come.
  Result<std::optional<Frame>> next();
  // Forgets all bytes and any error.
  void reset();

 private:
  std::string buffer_{};
  std::size_t begin_ = 0;
  std::optional<Error> broken_{};
};

}  // namespace fuse
