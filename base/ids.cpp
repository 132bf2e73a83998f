#include "base/ids.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text.h"

namespace fuse {

namespace {
constexpr std::string_view crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
}  // namespace

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got = ::getrandom(bytes.data() + done, count - done, 0);
    if (got < 0 && errno != EINTR) std::abort();  // a kernel without getrandom cannot run us
    if (got > 0) done += static_cast<std::size_t>(got);
  }
  return bytes;
}

std::string random_hex(std::size_t count) {
  return hex_encode(random_bytes(count));
}

std::string new_ulid(WallTime now) {
  const auto since_epoch =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
  auto time = static_cast<std::uint64_t>(since_epoch.count());
  std::string out(26, '0');
  for (std::size_t i = 10; i-- > 0; time >>= 5U) out[i] = crockford[time & 31U];
  // 16 characters of 5 bits each take exactly the 80 random bits.
  std::uint32_t bits = 0;
  unsigned have = 0;
  std::size_t at = 10;
  for (const char c : random_bytes(10)) {
    bits = (bits << 8U) | static_cast<unsigned char>(c);
    have += 8;
    while (have >= 5) {
      have -= 5;
      out[at++] = crockford[(bits >> have) & 31U];
    }
  }
  return out;
}

bool is_ulid(std::string_view text) {
  const auto known = [](char c) { return crockford.find(c) != std::string_view::npos; };
  return text.size() == 26 && text.front() <= '7' && std::ranges::all_of(text, known);
}

std::string ulid_to_uuid(const std::string& ulid) {
  assert(ulid.size() == 26);
  // 26 * 5 = 130 bits; the top two are always zero.
  std::string bytes;
  std::uint32_t bits = 0;
  unsigned have = 0;
  for (std::size_t i = 0; i < ulid.size(); ++i) {
    const std::size_t value = crockford.find(ulid[i]);
    bits = (bits << 5U) | static_cast<std::uint32_t>(value & 31U);
    have += i == 0 ? 3 : 5;
    if (have >= 8) {
      have -= 8;
      bytes += static_cast<char>((bits >> have) & 255U);
    }
  }
  const std::string hex = hex_encode(bytes);
  return cat(hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
             hex.substr(16, 4), "-", hex.substr(20, 12));
}

}  // namespace fuse
