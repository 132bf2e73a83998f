#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fuse {

// Bodies of `files` in all.
constexpr std::uint64_t most_file_bytes = 65536;
// Files that one create request carries in all.
constexpr std::uint64_t most_copied_bytes = 524288;
// Where the guest's agent keeps files of its own.
constexpr std::string_view reserved_dir = "/fuse";

// What is said about `files` with more than they may have.
std::string too_large_files(std::uint64_t bytes);
constexpr std::string_view too_large_files_hint =
    "`copy` carries up to 524288 bytes; fetch what is larger in a build step";

}  // namespace fuse
