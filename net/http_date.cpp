#include "net/http_date.h"

#include <string_view>

#include "base/text.h"

namespace fuse {

std::string http_date(std::time_t at) {
  constexpr std::string_view days = "SunMonTueWedThuFriSat";
  constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
  std::tm utc{};
  ::gmtime_r(&at, &utc);
  const auto two = [](int n) { return cat(n / 10, n % 10); };
  const auto name = [](std::string_view names, int n) {
    return names.substr(static_cast<std::size_t>(n) * 3, 3);
  };
  return cat(name(days, utc.tm_wday), ", ", two(utc.tm_mday), " ", name(months, utc.tm_mon), " ",
             utc.tm_year + 1900, " ", two(utc.tm_hour), ":", two(utc.tm_min), ":", two(utc.tm_sec),
             " GMT");
}

}  // namespace fuse
