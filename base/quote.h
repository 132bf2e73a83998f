#pragma once

#include <string>
#include <string_view>

namespace fuse {

// `text` in double quotes, the way error texts of the wire quote what a user
// wrote: \" and \\, \n, \t and their like, \x00 for other control characters,
// \u2028 for what does not show, \xff for a byte that is not UTF-8.
std::string in_quotes(std::string_view text);

}  // namespace fuse
