#include "guest/channel/frame.h"

#include <algorithm>
#include <cassert>

#include "base/text.h"
#include "guest/channel/sync.h"

namespace fuse {

namespace {

void append_big_endian(std::string& out, std::uint64_t number, unsigned bytes) {
  for (unsigned i = bytes; i-- > 0;) out += static_cast<char>((number >> (8 * i)) & 0xFFU);
}

std::uint64_t parse_big_endian(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8U | static_cast<unsigned char>(byte);
  return number;
}

void append_raw(std::string& out, const Frame& head, std::string_view payload, std::uint8_t flags) {
  out += static_cast<char>(head.type);
  out += static_cast<char>(flags);
  append_big_endian(out, 0, 2);
  append_big_endian(out, head.stream, 4);
  append_big_endian(out, payload.size(), 4);
  out += payload;
}

void append_data(std::string& out, const Frame& frame) {
  const bool end = (frame.flags & flag_end) != 0;
  const auto without_end = static_cast<std::uint8_t>(frame.flags & ~flag_end);
  std::string_view rest = frame.payload;
  std::size_t size = rest.size();
  do {
    const std::size_t start = out.size();
    append_raw(out, frame, rest.substr(0, size),
               end && size == rest.size() ? frame.flags : without_end);
    const std::size_t mark = out.find(sync_mark, start);
    if (mark == std::string::npos) {
      rest.remove_prefix(size);
      size = rest.size();
    } else {
      // The zero bytes of a header leave room for two bytes of the mark at most,
      // so something of the payload always stays.
      size = mark - start + sync_mark.size() - 1 - frame_header_size;
      out.resize(start);
    }
  } while (!rest.empty());
}

bool known_type(unsigned char type) {
  return type >= static_cast<unsigned char>(FrameType::hello) &&
         type <= static_cast<unsigned char>(FrameType::ping);
}

}  // namespace

void append_frame(std::string& out, const Frame& frame) {
  assert(frame.payload.size() <= most_frame_payload);
  if (frame.type == FrameType::data) {
    append_data(out, frame);
  } else {
    append_raw(out, frame, frame.payload, frame.flags);
  }
  // A reader holds back what may be the beginning of the mark; something that
  // cannot be its continuation sets these bytes free.
  if (sync_mark_tail(out) > 0) {
    append_raw(out, {.type = FrameType::ping, .flags = flag_pong}, {}, flag_pong);
  }
}

std::string u32_payload(std::uint32_t number) {
  std::string out;
  append_big_endian(out, number, 4);
  return out;
}

std::optional<std::uint32_t> parse_u32_payload(std::string_view payload) {
  if (payload.size() != 4) return std::nullopt;
  return static_cast<std::uint32_t>(parse_big_endian(payload));
}

std::string u64_payload(std::uint64_t number) {
  std::string out;
  append_big_endian(out, number, 8);
  return out;
}

std::optional<std::uint64_t> parse_u64_payload(std::string_view payload) {
  if (payload.size() != 8) return std::nullopt;
  return parse_big_endian(payload);
}

void FrameDecoder::feed(std::string_view bytes) {
  if (broken_) return;
  // Dropping what was read only once it is the larger part keeps this linear.
  if (begin_ > buffer_.size() / 2) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  buffer_ += bytes;
}

Result<std::optional<Frame>> FrameDecoder::next() {
  if (broken_) return *broken_;
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  if (rest.size() < frame_header_size) return std::optional<Frame>();
  const auto type = static_cast<unsigned char>(rest[0]);
  const std::uint64_t length = parse_big_endian(rest.substr(8, 4));
  if (!known_type(type) || parse_big_endian(rest.substr(2, 2)) != 0) {
    broken_ = Error{ErrorCode::invalid_argument, cat("not a frame of the channel: type ", type)};
  } else if (length > most_frame_payload) {
    broken_ = Error{ErrorCode::invalid_argument,
                    cat("a frame of ", length, " bytes is beyond the channel's limit")};
  }
  if (broken_) {
    buffer_.clear();
    begin_ = 0;
    return *broken_;
  }
  const std::size_t size = frame_header_size + static_cast<std::size_t>(length);
  if (rest.size() < size) return std::optional<Frame>();
  Frame frame{.type = static_cast<FrameType>(type),
              .flags = static_cast<std::uint8_t>(rest[1]),
              .stream = static_cast<std::uint32_t>(parse_big_endian(rest.substr(4, 4))),
              .payload = std::string(rest.substr(frame_header_size, size - frame_header_size))};
  begin_ += size;
  return std::optional<Frame>(std::move(frame));
}

void FrameDecoder::reset() {
  buffer_.clear();
  begin_ = 0;
  broken_.reset();
}

}  // namespace fuse
