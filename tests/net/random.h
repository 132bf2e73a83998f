#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace fuse {

// Random values that are the same in every run of a test.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(engine_);
  }
  std::string bytes(std::size_t count) {
    std::string out(count, '\0');
    for (char& c : out) c = static_cast<char>(below(256));
    return out;
  }
  std::string of(std::string_view alphabet, std::size_t count) {
    std::string out(count, '\0');
    for (char& c : out) c = alphabet[below(alphabet.size())];
    return out;
  }
  // `text` in pieces of 1 to `most` bytes.
  std::vector<std::string> pieces(std::string_view text, std::size_t most) {
    std::vector<std::string> out;
    while (!text.empty()) {
      const std::size_t size = std::min(text.size(), 1 + below(most));
      out.emplace_back(text.substr(0, size));
      text.remove_prefix(size);
    }
    return out;
  }

 private:
  std::mt19937 engine_;
};

}  // namespace fuse
