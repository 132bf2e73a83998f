#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "guest/channel/sync.h"

namespace fuse {

// Bytes that follow from the seed, and in which pieces of the channel's sync mark
// are more frequent than chance would have it.
class RandomBytes {
 public:
  explicit RandomBytes(std::uint32_t seed) : engine_(seed) {}

  std::size_t up_to(std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most)(engine_);
  }

  std::string of_size(std::size_t size) {
    std::string out;
    while (out.size() < size) {
      if (up_to(7) == 0) {
        out += sync_mark.substr(up_to(3), up_to(sync_mark.size()));
      } else {
        out += static_cast<char>(up_to(255));
      }
    }
    out.resize(size);
    return out;
  }

 private:
  std::mt19937 engine_;
};

// Byte `index` of a long content that cannot be guessed from its neighbours: what
// is lost, repeated or out of place shows.
inline char keyed_byte(std::uint32_t key, std::uint64_t index) {
  std::uint64_t mixed = index * 0x9E3779B97F4A7C15ULL + key;
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBULL;
  return static_cast<char>(mixed >> 56U);
}

}  // namespace fuse
