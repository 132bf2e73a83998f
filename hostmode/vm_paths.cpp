#include "hostmode/vm_paths.h"

#include "base/ids.h"
#include "base/text.h"

namespace fuse {

bool is_uid(std::string_view text) {
  return is_ulid(text);
}

std::string vm_id_of(std::string_view name) {
  std::string out;
  bool replaced = false;
  for (const char c : lowercase(name)) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    if (kept) out += c;
    if (!kept && !replaced) out += '-';
    replaced = !kept;
  }
  const std::size_t first = out.find_first_not_of('-');
  if (first == std::string::npos) return "vm";
  return out.substr(first, out.find_last_not_of('-') - first + 1);
}

std::string guest_host_name(const std::string& vm_id) {
  constexpr std::size_t longest = 63;
  std::string name = vm_id.substr(0, longest);
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name;
}

}  // namespace fuse
