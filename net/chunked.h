#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fuse {

// Decodes the chunked transfer coding from pieces of any size.  Strict: sizes are
// bare hex digits, extensions and trailers are read and dropped within limits.
class ChunkedDecoder {
 public:
  struct Step {
    std::size_t used = 0;  // of the bytes given; what follows belongs to the next message
    bool done = false;
  };

  // Appends what these bytes decode to.  invalid_argument when they are not
  // chunked; the decoder is then of no more use.
  Result<Step> feed(std::string_view bytes, std::string& out);

 private:
  enum class State { size, data, data_end, trailer };

  Result<void> take_line(bool& done);

  State state_ = State::size;
  std::string line_{};
  std::uint64_t left_ = 0;  // of the chunk at hand
  std::size_t trailer_bytes_ = 0;
};

// One chunk as it goes on the wire; nothing for no bytes, since an empty chunk is
// the end.
std::string encode_chunk(std::string_view bytes);
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

}  // namespace fuse
