#include "net/chunked.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/text.h"

namespace fuse {

namespace {

constexpr std::size_t most_line = 4096;
constexpr std::size_t most_trailer = 16384;

Error malformed() {
  return {ErrorCode::invalid_argument, "malformed chunked body"};
}

}  // namespace

Result<ChunkedDecoder::Step> ChunkedDecoder::feed(std::string_view bytes, std::string& out) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    if (state_ == State::data) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size() - at));
      out += bytes.substr(at, size);
      at += size;
      left_ -= size;
      if (left_ == 0) state_ = State::data_end;
      continue;
    }
    const char c = bytes[at++];
    line_ += c;
    if (c != '\n') {
      if (line_.size() > most_line) return malformed();
      continue;
    }
    bool done = false;
    if (auto taken = take_line(done); !taken) return taken.error();
    if (done) return Step{at, true};
  }
  return Step{at, false};
}

Result<void> ChunkedDecoder::take_line(bool& done) {
  const std::string whole = std::exchange(line_, {});
  if (!whole.ends_with("\r\n")) return malformed();
  const std::string_view line = std::string_view(whole).substr(0, whole.size() - 2);
  if (state_ == State::data_end) {
    if (!line.empty()) return malformed();
    state_ = State::size;
    return {};
  }
  if (state_ == State::trailer) {
    trailer_bytes_ += whole.size();
    if (trailer_bytes_ > most_trailer) return malformed();
    done = line.empty();
    return {};
  }
  const std::string_view digits = trim(line.substr(0, line.find(';')));
  const char* const end = digits.data() + digits.size();
  const auto [stop, failure] = std::from_chars(digits.data(), end, left_, 16);
  if (digits.empty() || failure != std::errc() || stop != end) return malformed();
  state_ = left_ == 0 ? State::trailer : State::data;
  return {};
}

std::string encode_chunk(std::string_view bytes) {
  if (bytes.empty()) return {};
  std::array<char, 16> size{};
  const auto [end, failure] = std::to_chars(size.begin(), size.end(), bytes.size(), 16);
  static_cast<void>(failure);  // 16 digits hold any size_t
  return cat(std::string_view(size.data(), static_cast<std::size_t>(end - size.data())), "\r\n",
             bytes, "\r\n");
}

}  // namespace fuse
