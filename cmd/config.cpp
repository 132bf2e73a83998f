#include "cmd/config.h"

#include <array>
#include <cstdlib>

#include "base/text.h"

namespace fuse::cmd {

namespace {

std::string value_of(const Variables& variables, const std::string& name) {
  return variables(name).value_or("");
}

// Empty when it is not set.  The background process works in another folder, so
// that a relative one would be another there.
Result<fs::path> absolute_path(const Variables& variables, const std::string& name) {
  fs::path path = value_of(variables, name);
  if (path.empty() || path.is_absolute()) return path;
  return Error{ErrorCode::invalid_argument,
               cat(name, " must be an absolute path, got \"", path.native(), "\"")};
}

// $NAME/fuse, or ~/FALLBACK/fuse.  The XDG rules ignore relative values.
std::optional<fs::path> user_dir(const Variables& variables, const std::string& name,
                                 const fs::path& fallback) {
  const fs::path named = value_of(variables, name);
  if (named.is_absolute()) return named / "fuse";
  const fs::path home = value_of(variables, "HOME");
  if (home.is_absolute()) return home / fallback / "fuse";
  return std::nullopt;
}

}  // namespace

Variables process_variables() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

Result<Config> read_config(const Variables& variables) {
  Config config{.accel = value_of(variables, "FUSE_ACCEL")};
  const auto named = absolute_path(variables, "FUSE_STATE");
  if (!named) return named.error();
  if (!named->empty()) {
    config.state_dir = named->lexically_normal();
  } else if (const auto dir = user_dir(variables, "XDG_STATE_HOME", ".local/state")) {
    config.state_dir = dir->lexically_normal();
  } else {
    return Error{ErrorCode::invalid_argument,
                 "there is no place for fuse's state: set HOME, XDG_STATE_HOME or FUSE_STATE to "
                 "an absolute path"};
  }
  const auto images = absolute_path(variables, "FUSE_IMAGES");
  if (!images) return images.error();
  config.images_dir = images->empty() ? config.state_dir / "images" : *images;
  return config;
}

bool forbids_colour(const Variables& variables) {
  const std::string term = value_of(variables, "TERM");
  return !value_of(variables, "NO_COLOR").empty() || term.empty() || term == "dumb";
}

std::vector<std::string> background_environment(const Variables& variables) {
  static constexpr std::array names = {"PATH",
                                       "HOME",
                                       "USER",
                                       "LOGNAME",
                                       "LANG",
                                       "TMPDIR",
                                       "TERM",
                                       "FUSE_ACCEL",
                                       "FUSE_IMAGES",
                                       "FUSE_QEMU_USER",
                                       "BASE_ROOTFS",
                                       "QEMU_BIN",
                                       "OVMF_CODE",
                                       "XDG_STATE_HOME",
                                       "XDG_RUNTIME_DIR",
                                       "XDG_CONFIG_HOME",
                                       "XDG_CACHE_HOME"};
  std::vector<std::string> environment;
  for (const char* name : names) {
    if (const auto value = variables(name)) environment.push_back(cat(name, "=", *value));
  }
  return environment;
}

}  // namespace fuse::cmd
