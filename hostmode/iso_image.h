#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fuse {

struct IsoFile {
  std::string_view name{};  // lower case, digits, dashes and at most one dot
  std::string_view bytes{};
};

// A read-only file system (ISO 9660) with these few files and a label; Linux shows
// the names in lower case.  Equal arguments make equal bytes.
std::string iso_image(std::string_view label, std::span<const IsoFile> files);

}  // namespace fuse
