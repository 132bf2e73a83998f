#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace fuse {

// A structure of a file's bytes at `offset`, wherever it is aligned; nothing
// when it would lie outside.
template <class T>
std::optional<T> read_at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

inline std::optional<std::string_view> slice(std::string_view bytes, std::uint64_t offset,
                                             std::uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return std::nullopt;
  return bytes.substr(offset, size);
}

}  // namespace fuse
