#include "hostmode/devices/device_files.h"

#include <array>
#include <cstdlib>

#include "base/quote.h"
#include "base/text.h"

namespace fuse {

namespace {

constexpr std::array roles_by_name = {CardRole::whole, CardRole::mig, CardRole::off};

Result<std::map<std::string, CardRole>> roles_of(const std::map<std::string, std::string>& lines,
                                                 const fs::path& file) {
  std::map<std::string, CardRole> roles;
  for (const auto& [slot, words] : lines) {
    const std::string name = words.substr(0, words.find(' '));
    bool known = false;
    for (const CardRole role : roles_by_name) {
      if (to_string(role) != name) continue;
      roles[slot] = role;
      known = true;
    }
    if (!known) {
      return Error{ErrorCode::invalid_argument,
                   cat(file.native(), ": ", slot, " has role ", in_quotes(name),
                       ", and the roles are whole, mig and off")};
    }
  }
  return roles;
}

// "BOOT_ID SECONDS"; a line that is not so says nothing.
std::map<std::string, LastReset> resets_of(const std::map<std::string, std::string>& lines) {
  std::map<std::string, LastReset> resets;
  for (const auto& [slot, words] : lines) {
    const std::size_t blank = words.find(' ');
    if (blank == std::string::npos) continue;
    resets[slot] = {.boot_id = words.substr(0, blank),
                    .seconds = std::strtod(words.c_str() + blank, nullptr)};
  }
  return resets;
}

template <class T, class Parse>
Result<void> read_into(T& into, Host& host, const fs::path& file, const Parse& parse) {
  const auto text = read_if_there(host, file);
  if (!text) return text.error();
  auto value = parse(*text, file.native());
  if (!value) return value.error();
  into = std::move(*value);
  return {};
}

Result<void> write(Host& host, const fs::path& file, std::string_view text) {
  if (auto made = host.make_dirs(file.parent_path(), 0755); !made) return made;
  return host.replace_file(file, text, 0644);
}

}  // namespace

std::string_view to_string(CardRole role) {
  switch (role) {
    case CardRole::whole:
      return "whole";
    case CardRole::mig:
      return "mig";
    case CardRole::off:
      break;
  }
  return "off";
}

Result<DeviceFiles> read_device_files(Host& host, const DevicePaths& paths) {
  DeviceFiles files;
  std::map<std::string, std::string> roles;
  if (auto r = read_into(files.groups, host, paths.vfio(), parse_vfio_inventory); !r) {
    return r.error();
  }
  if (auto r = read_into(files.instances, host, paths.mig(), parse_mig_inventory); !r) {
    return r.error();
  }
  if (auto r = read_into(files.facts, host, paths.facts(), parse_kept_facts); !r) return r.error();
  if (auto r = read_into(files.quarantined, host, paths.quarantine(), parse_slot_lines); !r) {
    return r.error();
  }
  if (auto r = read_into(roles, host, paths.roles(), parse_slot_lines); !r) return r.error();
  auto known = roles_of(roles, paths.roles());
  if (!known) return known.error();
  files.roles = std::move(*known);
  std::map<std::string, std::string> resets;
  if (auto r = read_into(resets, host, paths.resets(), parse_slot_lines); !r) return r.error();
  files.resets = resets_of(resets);
  return files;
}

Result<void> write_vfio_inventory(Host& host, const DevicePaths& paths,
                                  const std::vector<InventoryGroup>& groups) {
  return write(host, paths.vfio(), to_text(groups));
}

Result<void> write_mig_inventory(Host& host, const DevicePaths& paths,
                                 const std::vector<InventoryInstance>& instances) {
  return write(host, paths.mig(), to_text(instances));
}

Result<void> write_kept_facts(Host& host, const DevicePaths& paths,
                              const std::map<std::string, KeptFacts>& facts) {
  return write(host, paths.facts(), to_text(facts));
}

Result<void> write_roles(Host& host, const DevicePaths& paths,
                         const std::map<std::string, CardRole>& roles) {
  std::map<std::string, std::string> lines;
  for (const auto& [slot, role] : roles) lines[slot] = to_string(role);
  return write(host, paths.roles(),
               cat("# SLOT ROLE: whole (given to VMs as it is), mig (cut into instances) or off "
                   "(left alone)\n",
                   slot_lines_text(lines)));
}

Result<void> note_resets(Host& host, const DevicePaths& paths,
                         const std::vector<std::string>& addresses) {
  const auto uptime = host.read_file("/proc/uptime");
  if (!uptime) return uptime.error();
  const auto boot_id = host.read_file("/proc/sys/kernel/random/boot_id");
  if (!boot_id) return boot_id.error();
  const auto text = read_if_there(host, paths.resets());
  if (!text) return text.error();
  auto lines = parse_slot_lines(*text, paths.resets().native());
  if (!lines) return lines.error();
  for (const std::string& address : addresses) {
    (*lines)[address] = cat(trim(*boot_id), " ", trim(uptime->substr(0, uptime->find(' '))));
  }
  return write(host, paths.resets(),
               cat("# SLOT BOOT SECONDS: when each was last reset, by the host's uptime\n",
                   slot_lines_text(*lines)));
}

Result<void> quarantine_card(Host& host, const DevicePaths& paths, const std::string& address,
                             const std::string& reason) {
  const auto text = read_if_there(host, paths.quarantine());
  if (!text) return text.error();
  auto lines = parse_slot_lines(*text, paths.quarantine().native());
  if (!lines) return lines.error();
  if (!lines->emplace(address, reason).second) return {};
  return write(
      host, paths.quarantine(),
      cat("# SLOT REASON: cards that are set aside; remove the line of one that is sound\n",
          slot_lines_text(*lines)));
}

}  // namespace fuse
