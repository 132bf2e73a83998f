#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace fuse {

inline constexpr std::size_t longest_common_name = 64;  // in bytes (RFC 5280, A.1)

struct CertificateSpec {
  std::string common_name{};                // not empty
  std::vector<std::string> ip_addresses{};  // its subject alternative names
  WallTime from{};
  std::chrono::seconds lifetime{0};
};

// Both PEM, the key as "EC PRIVATE KEY" (RFC 5915).
struct CertificateAndKey {
  std::string certificate{};
  std::string key{};
};

// A server's certificate that signs itself, over a new key on the curve P-256.
Result<CertificateAndKey> make_self_signed(const CertificateSpec& spec);

}  // namespace fuse
