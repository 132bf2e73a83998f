#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "orchestrator/callers.h"

namespace fuse {

namespace {

constexpr std::size_t bits_of_byte = 8;

// The 4 or 16 bytes of an address; an IPv4 address within IPv6 is the former.
std::string bytes_of_address(const std::string& text) {
  std::array<char, 16> bytes{};
  if (::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return {bytes.data(), 4};
  const std::string plain = text.substr(0, text.find('%'));  // without an interface
  if (::inet_pton(AF_INET6, plain.c_str(), bytes.data()) != 1) return {};
  const bool mapped =
      std::all_of(bytes.begin(), bytes.begin() + 10, [](char c) { return c == 0; }) &&
      bytes[10] == '\xff' && bytes[11] == '\xff';
  return mapped ? std::string(bytes.data() + 12, 4) : std::string(bytes.data(), bytes.size());
}

}  // namespace

Result<AddressRange> AddressRange::parse(const std::string& text) {
  const std::size_t slash = text.find('/');
  AddressRange out;
  out.prefix_ = bytes_of_address(text.substr(0, slash));
  const auto most = static_cast<std::int64_t>(out.prefix_.size() * bits_of_byte);
  const auto bits =
      slash == std::string::npos ? std::optional(most) : parse_int(text.substr(slash + 1));
  if (out.prefix_.empty() || !bits || *bits < 0 || *bits > most) {
    return Error{ErrorCode::invalid_argument,
                 cat("\"", text, "\" is not a range of addresses such as 10.0.0.0/8")};
  }
  out.bits_ = static_cast<std::size_t>(*bits);
  return out;
}

bool AddressRange::contains(const std::string& address) const {
  const std::string bytes = bytes_of_address(address);
  if (bytes.size() != prefix_.size()) return false;
  for (std::size_t bit = 0; bit < bits_; ++bit) {
    const auto mask = static_cast<unsigned char>(0x80U >> (bit % bits_of_byte));
    const auto differs =
        static_cast<unsigned char>(bytes[bit / bits_of_byte] ^ prefix_[bit / bits_of_byte]);
    if ((differs & mask) != 0) return false;
  }
  return true;
}

}  // namespace fuse
