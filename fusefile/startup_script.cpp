#include "fusefile/startup_script.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/text.h"
#include "fusefile/guest_path.h"

namespace fuse {

namespace {

constexpr std::string_view prelude =
    "set -eu\n"
    "if (set -o pipefail) 2>/dev/null; then set -o pipefail; fi\n";
constexpr std::size_t base64_line = 76;
constexpr std::size_t longest_step_name = 80;

void write_file(std::string& script, const Fusefile::FileEntry& entry, std::size_t index,
                std::string_view body) {
  const std::string dir = parent_path(entry.path);
  const std::string path = shell_quote(entry.path);
  const std::string marker = cat("FUSE_FILE_EOF_", index);
  if (dir != "." && dir != "/") script += cat("mkdir -p ", shell_quote(dir), "\n");
  script += cat("base64 -d > ", path, " <<'", marker, "'\n");
  const std::string encoded = base64_encode(body);
  for (std::size_t i = 0; i < encoded.size(); i += base64_line) {
    script += cat(std::string_view(encoded).substr(i, base64_line), "\n");
  }
  script += cat(marker, "\n");
  if (!entry.mode.empty()) script += cat("chmod ", entry.mode, " ", path, "\n");
}

std::string run_text(const Fusefile::Run& run) {
  if (const auto* text = std::get_if<std::string>(&run)) return *text;
  std::vector<std::string> argv;
  for (const std::string& argument : std::get<std::vector<std::string>>(run)) {
    argv.push_back(shell_quote(argument));
  }
  return join(argv, " ");
}

void write_build(std::string& script, const std::vector<Fusefile::Step>& steps) {
  script += "# fuse: build phase (a failure here exits 90)\n";
  script += "trap '[ $? -eq 0 ] || exit 90' EXIT\n";
  for (const Fusefile::Step& step : steps) {
    if (step.workdir.empty()) {
      script += cat(step.run, "\n");
    } else {
      script += cat("(cd ", shell_quote(step.workdir), "; ", step.run, ")\n");
    }
  }
  script += "trap - EXIT\n";
}

// The first line of a step that says something, for progress.
std::string step_name(std::string_view run) {
  for (const std::string& line : split(run, '\n')) {
    const std::string_view content = trim(line);
    if (content.empty() || content.front() == '#') continue;
    std::size_t length = std::min(content.size(), longest_step_name);
    // Not in the middle of a character.
    while (length < content.size() && length > 0 &&
           (static_cast<unsigned char>(content[length]) & 0xC0U) == 0x80U) {
      --length;
    }
    return std::string(content.substr(0, length));
  }
  return "build step";
}

}  // namespace

std::string file_body(const Fusefile& file, std::size_t index, const LoadedSources& sources) {
  const Fusefile::FileEntry& entry = file.files[index];
  if (entry.content) return *entry.content;
  const auto it = sources.file_bodies.find(index);
  return it == sources.file_bodies.end() ? "" : it->second;
}

std::string startup_script(const Fusefile& file, const LoadedSources& sources) {
  if (file.files.empty() && file.build.empty() && !file.run) return "";
  const std::string workspace = shell_quote(file.workspace);
  std::string script = cat(prelude, "mkdir -p ", workspace, "\ncd ", workspace, "\n");
  if (!file.env.empty()) script += "set -a\n. /fuse/env\nset +a\n";
  for (std::size_t i = 0; i < file.files.size(); ++i) {
    write_file(script, file.files[i], i, file_body(file, i, sources));
  }
  if (!file.build.empty()) write_build(script, file.build);
  if (!file.build.empty() && file.run) script += "# fuse: run phase\n";
  if (file.run) script += cat(run_text(*file.run), "\n");
  return script;
}

Phases phases_of(const Fusefile& file) {
  Phases phases;
  for (const Fusefile::Step& step : file.build) {
    phases.build.push_back({step_name(step.run), cat(prelude, step.run, "\n"),
                            resolve_path(file.workspace, step.workdir)});
  }
  if (file.run) {
    phases.run = cat(prelude, run_text(*file.run), "\n");
    phases.workdir = clean_path(file.workspace);
  }
  return phases;
}

}  // namespace fuse
