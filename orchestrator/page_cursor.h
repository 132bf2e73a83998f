#pragma once

#include <string>

#include "orchestrator/tables.h"

namespace fuse {

// The opaque token of a list's next page, which begins after `position`.
std::string encode_cursor(const EnvironmentTable::Position& position);
// invalid_argument `invalid pagination cursor` for anything else; "" is the
// beginning.
Result<EnvironmentTable::Position> decode_cursor(const std::string& cursor);

// 50 for less than 1, 200 at most.
std::int64_t page_size(std::int64_t limit);

}  // namespace fuse
