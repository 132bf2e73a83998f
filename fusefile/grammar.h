#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fuse {

// [a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?
bool is_dns_label(std::string_view text);
// [a-zA-Z0-9]([-._a-zA-Z0-9]{0,61}[a-zA-Z0-9])?
bool is_placement_label(std::string_view text);
// [A-Za-z_][A-Za-z0-9_]*
bool is_env_name(std::string_view text);
// 0?[0-7]{3}
bool is_octal_mode(std::string_view text);

// Whether no card of this kind can be split into MIG instances.  A kind that is
// not known passes.
bool is_kind_without_mig(std::string_view gpu_kind);

// `text` as a DNS label: lower case, a dash for each run of what is not allowed,
// at most 63 characters; "" when nothing is left.
std::string to_dns_label(std::string_view text);

}  // namespace fuse
