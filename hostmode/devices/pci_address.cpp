#include "hostmode/devices/pci_address.h"

#include <algorithm>

#include "base/text.h"

namespace fuse {

namespace {

bool is_hex(std::string_view text, std::size_t least, std::size_t most) {
  const auto digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() >= least && text.size() <= most && std::ranges::all_of(text, digit);
}

// Four digits, or as many as it takes.
std::string domain_of(std::string text) {
  text.erase(0, std::min(text.find_first_not_of('0'), text.size()));
  if (text.size() < 4) text.insert(0, 4 - text.size(), '0');
  return text;
}

}  // namespace

std::optional<std::string> pci_slot(std::string_view text) {
  const std::string lower = lowercase(trim(text));
  const auto parts = split(std::string_view(lower).substr(0, lower.find('.')), ':');
  if (parts.size() != 2 && parts.size() != 3) return std::nullopt;
  const std::string& bus = parts[parts.size() - 2];
  const std::string& device = parts.back();
  const std::string domain = parts.size() == 3 ? parts.front() : "0000";
  if (!is_hex(domain, 4, 8) || !is_hex(bus, 2, 2) || !is_hex(device, 2, 2)) return std::nullopt;
  if (lower.find('.') != std::string::npos) {
    const std::string function = lower.substr(lower.find('.') + 1);
    if (function.size() != 1 || function.front() < '0' || function.front() > '7') {
      return std::nullopt;
    }
  }
  return cat(domain_of(domain), ':', bus, ':', device);
}

std::optional<std::string> pci_address(std::string_view text) {
  const auto slot = pci_slot(text);
  const std::string_view word = trim(text);
  const std::size_t dot = word.find('.');
  if (!slot || dot == std::string_view::npos) return std::nullopt;
  return cat(*slot, word.substr(dot));
}

}  // namespace fuse
