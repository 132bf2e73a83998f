#include "hostmode/firmware.h"

#include <array>
#include <optional>
#include <string>

#include "base/files.h"
#include "base/text.h"

namespace fuse {
namespace {

// Where Debian's package ovmf has them.
constexpr std::array usual_places = {"/usr/share/OVMF/OVMF_CODE_4M.fd",
                                     "/usr/share/OVMF/OVMF_CODE.fd"};

// The variables lie beside the code and are made for it: OVMF_VARS_4M.fd for
// OVMF_CODE_4M.fd.
std::optional<fs::path> vars_of(const fs::path& code) {
  std::string name = code.filename().native();
  const std::size_t at = name.rfind("CODE");
  if (at == std::string::npos) return std::nullopt;
  return code.parent_path() / name.replace(at, 4, "VARS");
}

// Not "unavailable": nothing gets better by asking again.
Error unusable(std::string message) {
  return {ErrorCode::internal, std::move(message)};
}

}  // namespace

Result<Firmware> find_firmware(Host& host, const fs::path& code) {
  if (code.empty()) {
    for (const char* const place : usual_places) {
      const auto vars = vars_of(place);
      if (vars && has_entry(host, place) && has_entry(host, *vars)) return Firmware{place, *vars};
    }
    return unusable(
        "there is no UEFI firmware on this host: install OVMF (Debian: ovmf), or name its file "
        "with OVMF_CODE");
  }
  const auto vars = vars_of(code);
  if (!vars) {
    return unusable(cat(code.native(),
                        " is no UEFI firmware: its name has no CODE, in whose place the file of "
                        "its variables has VARS"));
  }
  for (const fs::path& file : {code, *vars}) {
    if (!has_entry(host, file)) {
      return unusable(cat(file.native(),
                          " is missing: VMs need both the firmware's code and its "
                          "variables (Debian: ovmf)"));
    }
  }
  return Firmware{code, *vars};
}

}  // namespace fuse
