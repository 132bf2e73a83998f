#include "fusefile/starter.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "fusefile/ignore.h"
#include "fusefile/keys.h"

namespace fuse {

namespace {

constexpr std::size_t widest_line = 90;

constexpr std::string_view greeting =
    "|\n"
    "  echo \"hello from $(uname -n), a machine of your own\"\n"
    "  echo \"it has $(nproc) CPU and $(free -m | awk '/^Mem:/ {print $2}') MiB of memory\"\n";

// Needs no driver to tell that the card is there.
constexpr std::string_view gpu_greeting =
    "|\n"
    "  for device in /sys/bus/pci/devices/*; do\n"
    "    if [ \"$(cat \"$device/vendor\")\" = 0x10de ]; then\n"
    "      echo \"NVIDIA device $(cat \"$device/device\") at ${device##*/}\"\n"
    "    fi\n"
    "  done\n"
    "  if command -v nvidia-smi >/dev/null; then nvidia-smi; fi\n";

// A key that is set; the others are comments.
struct Setting {
  std::string_view section;
  std::string_view name;
  std::string_view value;
  bool gpu_only = false;
};
constexpr auto settings = std::to_array<Setting>({
    {"", "version", "1"},
    {"", "image", "base"},
    {"", "resources", ""},  // its keys are lines of their own
    {"resources", "cpus", "1"},
    {"resources", "memory", "512MB"},
    {"resources", "gpu", "1", true},
    {"resources", "max_runtime", "1h"},
});

std::optional<std::string_view> value_of(const KeyInfo& key, bool gpu) {
  if (key.section.empty() && key.name == "run") return gpu ? gpu_greeting : greeting;
  const auto* const setting =
      std::find_if(settings.begin(), settings.end(), [&](const Setting& candidate) {
        return candidate.section == key.section && candidate.name == key.name &&
               (gpu || !candidate.gpu_only);
      });
  if (setting == settings.end()) return std::nullopt;
  return setting->value;
}

// `text` as comment lines, broken between words.
std::string comment(std::string_view text, std::string_view indent) {
  std::string out;
  std::string line = cat(indent, "#");
  for (const std::string& word : split(text, ' ')) {
    if (line.size() + 1 + word.size() > widest_line) {
      out += cat(line, "\n");
      line = cat(indent, "#");
    }
    line += cat(" ", word);
  }
  return cat(out, line, "\n");
}

void write_key(std::string& out, const KeyInfo& key, std::string_view indent, bool gpu) {
  out += comment(key.rule, indent);
  const auto value = value_of(key, gpu);
  if (!value) {
    out += cat(indent, "# ", key.name, ": ", key.example, "\n");
  } else if (value->empty()) {
    out += cat(indent, key.name, ":\n");
  } else {
    out += cat(indent, key.name, ": ", *value, value->ends_with('\n') ? "" : "\n");
  }
}

// Other names of keys, which new files do without.
bool is_old_name(const KeyInfo& key) {
  return key.name == "setup" || key.name == "storage";
}

}  // namespace

std::string starter_fusefile(bool gpu) {
  std::string out =
      "# What to run, and on what. Check it with `fuse validate`, run it with `fuse run`.\n";
  for (const KeyInfo* key : keys_of("")) {
    if (is_old_name(*key)) continue;
    out += '\n';
    write_key(out, *key, "", gpu);
    if (key->name != "resources") continue;
    for (const KeyInfo* resource : keys_of("resources")) {
      if (!is_old_name(*resource)) write_key(out, *resource, "  ", gpu);
    }
  }
  return out;
}

std::string starter_ignore_file() {
  std::string out =
      "# What `copy` leaves out of folders, in gitignore's syntax: the last pattern that matches\n"
      "# decides. Without any pattern here these are left out; !NAME takes one back:\n#\n";
  for (const std::string& pattern : split(IgnoreRules::defaults(), '\n')) {
    if (!pattern.empty()) out += cat("#   ", pattern, "\n");
  }
  return out + "\n*.log\n*.tmp\n";
}

}  // namespace fuse
