// Feeds any bytes to the readers of sizes and durations: what they take has to
// be within its bounds, and a duration that is written has to read the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/units.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto mib = fuse::parse_size_mib(text);
  if (mib && *mib < 0) std::abort();
  const auto time = fuse::parse_duration(text);
  if (!time) return 0;
  const auto again = fuse::parse_duration(fuse::to_string(*time));
  if (!again || *again != *time) std::abort();
  return 0;
}
