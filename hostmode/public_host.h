#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fuse {

// Whether `text` is an IPv4 or IPv6 address (without brackets) or a DNS name.
bool is_public_host(std::string_view text);

// The address of this host that others are likely to reach it at: the one that
// packets to the world outside would carry, IPv4 first, else that of any interface
// that is up.  Nothing is sent.  unavailable when there is none but loopback.
Result<std::string> probe_public_host();

// HOST:PORT, with an IPv6 address in brackets.
std::string authority_of(std::string_view host, std::int32_t port);

}  // namespace fuse
