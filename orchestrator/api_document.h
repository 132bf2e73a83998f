#pragma once

#include <string_view>

namespace fuse {

// docs/openapi.json, which the build puts into the executable without its layout.
extern const std::string_view api_document;

}  // namespace fuse
