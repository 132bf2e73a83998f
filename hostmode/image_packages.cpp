#include "hostmode/image_packages.h"

#include <algorithm>

#include "base/text.h"

namespace fuse {

Result<Distribution> parse_os_release(std::string_view text) {
  Distribution distribution;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    std::string_view value = trim(std::string_view(line).substr(equals + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    const std::string_view key = std::string_view(line).substr(0, equals);
    if (key == "ID") distribution.id = value;
    if (key == "VERSION_ID") distribution.version = value;
    if (key == "VERSION_CODENAME") distribution.codename = value;
  }
  if (distribution.id == "debian" || distribution.id == "ubuntu") {
    if (!distribution.codename.empty()) return distribution;
  }
  return Error{ErrorCode::unimplemented,
               cat("images are baked on Debian and Ubuntu; this is ",
                   distribution.id.empty() ? "neither" : distribution.id)};
}

std::vector<PackageSource> parse_source_targets(std::string_view targets,
                                                const Distribution& distribution) {
  std::vector<PackageSource> sources;
  for (const std::string& line : split(targets, '\n')) {
    const std::vector<std::string> fields = split(line, '|');
    if (fields.size() != 4 || !equal_ignoring_case(fields[0], distribution.id)) continue;
    const std::string& suite = fields[1];
    const std::string& code = distribution.codename;
    if (suite != code && suite != cat(code, "-updates") && suite != cat(code, "-security"))
      continue;
    const auto same = std::ranges::find_if(sources, [&](const PackageSource& source) {
      return source.uri == fields[3] && source.suite == suite;
    });
    if (same == sources.end()) {
      sources.push_back({.uri = fields[3], .suite = suite, .components = {fields[2]}});
    } else if (std::ranges::find(same->components, fields[2]) == same->components.end()) {
      same->components.push_back(fields[2]);
    }
  }
  return sources;
}

std::string depended_package(std::string_view shown, std::string_view prefix) {
  constexpr std::string_view key = "Depends:";
  for (const std::string& line : split(shown, '\n')) {
    if (!line.starts_with(key)) continue;
    for (const std::string& need : split(std::string_view(line).substr(key.size()), ',')) {
      const std::string_view name = trim(need).substr(0, trim(need).find_first_of(" (|:"));
      if (name.starts_with(prefix)) return std::string(name);
    }
  }
  return {};
}

std::vector<std::string> PackageFetcher::command(const char* program) const {
  std::vector<std::string> argv{tools_.at(program)};
  if (own_lists_) {
    argv.insert(argv.end(), {"-o", cat("Dir::State::Lists=", (dir_ / "lists").native()), "-o",
                             cat("Dir::Cache=", (dir_ / "cache").native())});
  }
  return argv;
}

Result<void> PackageFetcher::refresh_lists() {
  for (const char* folder : {"lists/partial", "cache/archives/partial"}) {
    if (auto made = host_.make_dirs(dir_ / folder, 0755); !made) return made;
  }
  own_lists_ = true;
  std::vector<std::string> argv = command("apt-get");
  argv.insert(argv.end(), {"-q", "update"});
  if (auto done = steps_.run(argv, dir_); !done) return done.error();
  return {};
}

Result<std::string> PackageFetcher::with_lists(const std::function<Result<std::string>()>& ask) {
  auto answer = ask();
  if (answer || own_lists_) return answer;
  if (auto done = refresh_lists(); !done) return done.error();
  return ask();
}

Result<std::string> PackageFetcher::behind(const std::string& metapackage,
                                           std::string_view prefix) {
  return with_lists([&]() -> Result<std::string> {
    std::vector<std::string> argv = command("apt-cache");
    argv.insert(argv.end(), {"show", "--no-all-versions", metapackage});
    auto shown = steps_.run(argv, dir_);
    if (!shown) return shown;
    std::string name = depended_package(*shown, prefix);
    if (!name.empty()) return name;
    return Error{ErrorCode::unavailable,
                 cat("package ", metapackage, " depends on no ", prefix, "* package")};
  });
}

Result<fs::path> PackageFetcher::fetch(const std::string& package) {
  const fs::path dir = dir_ / package;
  if (auto made = host_.make_dirs(dir / "root", 0755); !made) return made.error();
  const auto downloaded = with_lists([&] {
    std::vector<std::string> argv = command("apt-get");
    argv.insert(argv.end(), {"-q", "download", package});
    return steps_.run(argv, dir);
  });
  if (!downloaded) return downloaded.error();
  const auto names = host_.list_dir(dir);
  if (!names) return names.error();
  const auto deb =
      std::ranges::find_if(*names, [](const std::string& name) { return name.ends_with(".deb"); });
  if (deb == names->end()) {
    return Error{ErrorCode::unavailable, cat("apt-get download ", package, " left no file")};
  }
  const auto unpacked = steps_.run(
      {tools_.at("dpkg-deb"), "-x", (dir / *deb).native(), (dir / "root").native()}, dir);
  if (!unpacked) return unpacked.error();
  return dir / "root";
}

}  // namespace fuse
