#pragma once

#include <ctime>
#include <string>

namespace fuse {

// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110), independent of the locale.
std::string http_date(std::time_t at);

}  // namespace fuse
