#include "net/attach_frames.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/text.h"

namespace fuse {

namespace {

constexpr std::size_t head_size = 8;
constexpr std::size_t length_at = 4;

std::uint32_t read_length(std::string_view head) {
  std::uint32_t length = 0;
  for (std::size_t i = length_at; i < head_size; ++i) {
    length = (length << 8U) | static_cast<unsigned char>(head[i]);
  }
  return length;
}

void append_frame(std::string& out, AttachFrameType type, std::string_view payload) {
  out += static_cast<char>(type);
  out.append(3, '\0');
  for (unsigned shift = 32; shift > 0;) {
    shift -= 8;
    out += static_cast<char>((payload.size() >> shift) & 255U);
  }
  out += payload;
}

}  // namespace

std::string encode_attach_frame(const AttachFrame& frame) {
  std::string out;
  std::string_view rest = frame.payload;
  do {
    const std::string_view piece = rest.substr(0, most_attach_payload);
    append_frame(out, frame.type, piece);
    rest.remove_prefix(piece.size());
  } while (!rest.empty());
  return out;
}

void AttachDecoder::feed(std::string_view bytes) {
  if (used_ > 0) {
    buffer_.erase(0, used_);
    used_ = 0;
  }
  buffer_ += bytes;
}

Result<std::optional<AttachFrame>> AttachDecoder::next() {
  while (buffer_.size() - used_ >= head_size) {
    const std::string_view head = std::string_view(buffer_).substr(used_, head_size);
    const std::size_t length = read_length(head);
    if (length > most_attach_payload) {
      return Error{ErrorCode::payload_too_large,
                   cat("an attach frame claims ", length, " bytes; the most is 1048576")};
    }
    if (buffer_.size() - used_ < head_size + length) break;
    const auto type = static_cast<unsigned char>(head[0]);
    AttachFrame frame{static_cast<AttachFrameType>(type),
                      buffer_.substr(used_ + head_size, length)};
    used_ += head_size + length;
    if (type <= static_cast<unsigned char>(AttachFrameType::exit)) {
      return std::optional(std::move(frame));
    }
  }
  return std::optional<AttachFrame>();
}

}  // namespace fuse
