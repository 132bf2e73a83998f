#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fuse {

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
