#include "hostmode/devices/kernel_log.h"

#include <cstdlib>

#include "base/command.h"
#include "base/text.h"
#include "hostmode/devices/pci_address.h"

namespace fuse {

namespace {

// "[ 1234.567890] ..." of dmesg; nothing for its dates (dmesg -T).
std::optional<double> seconds_of(std::string_view line) {
  if (!line.starts_with('[')) return std::nullopt;
  const std::string_view stamp = trim(line.substr(1, line.find(']') - 1));
  if (stamp.empty() || stamp.find_first_not_of("0123456789.") != std::string_view::npos) {
    return std::nullopt;
  }
  return std::strtod(std::string(stamp).c_str(), nullptr);
}

std::optional<XidEvent> parse_line(std::string_view line) {
  constexpr std::string_view mark = "NVRM: Xid (PCI:";
  const std::size_t begin = line.find(mark);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(begin + mark.size());
  const std::size_t close = rest.find("):");
  if (close == std::string_view::npos) return std::nullopt;
  auto slot = pci_slot(rest.substr(0, close));
  const std::string_view said = trim(rest.substr(close + 2));
  const auto number = parse_int(said.substr(0, said.find(',')));
  if (!slot || !number || *number < 0 || *number > 100000) return std::nullopt;
  const std::size_t comma = said.find(',');
  return XidEvent{
      .slot = *std::move(slot),
      .xid = static_cast<int>(*number),
      .at = seconds_of(line),
      .words = comma == std::string_view::npos ? "" : std::string(trim(said.substr(comma + 1)))};
}

}  // namespace

std::vector<XidEvent> parse_xids(std::string_view log) {
  std::vector<XidEvent> events;
  for (const std::string& line : split(log, '\n')) {
    if (auto event = parse_line(trim(line))) events.push_back(*std::move(event));
  }
  return events;
}

Result<std::string> read_kernel_log(Host& host) {
  return require_command(host, {.argv = {"dmesg"}});
}

}  // namespace fuse
