#pragma once

#include <map>
#include <string>
#include <vector>

#include "hostmode/image_steps.h"

namespace fuse {

// A line of sources.list.
struct PackageSource {
  std::string uri{};
  std::string suite{};
  std::vector<std::string> components{};
  friend bool operator==(const PackageSource&, const PackageSource&) = default;
};

// What this machine runs, from /etc/os-release.
struct Distribution {
  std::string id{};        // "debian"
  std::string version{};   // "12"
  std::string codename{};  // "bookworm"
};
Result<Distribution> parse_os_release(std::string_view text);

// The distribution's own sources among those that apt knows: of its codename, its
// updates and its security fixes.  `targets` is what source_targets_format prints.
inline constexpr std::string_view source_targets_format =
    "$(ORIGIN)|$(RELEASE)|$(COMPONENT)|$(REPO_URI)";
std::vector<PackageSource> parse_source_targets(std::string_view targets,
                                                const Distribution& distribution);

// The first package of a Depends field that begins with `prefix`, in the text of
// `apt-cache show`; empty when there is none.
std::string depended_package(std::string_view shown, std::string_view prefix);

// Fetches packages through apt, which checks the archive's signatures, from the
// sources that this machine is configured with.  Needs neither root nor an
// installation: everything lies in `dir`.
class PackageFetcher {
 public:
  // `tools` has apt-get, apt-cache and dpkg-deb.
  PackageFetcher(Host& host, BakeSteps& steps, const std::map<std::string, std::string>& tools,
                 fs::path dir)
      : host_(host), steps_(steps), tools_(tools), dir_(std::move(dir)) {}

  // Downloads the newest version of a package and unpacks it into a folder.
  Result<fs::path> fetch(const std::string& package);
  // The versioned package behind a metapackage, as depended_package() finds it.
  Result<std::string> behind(const std::string& metapackage, std::string_view prefix);

 private:
  // Runs `ask` with the machine's package lists and, should that fail, once more
  // with lists fetched now into `dir_`: the machine's may be missing or outdated.
  Result<std::string> with_lists(const std::function<Result<std::string>()>& ask);
  [[nodiscard]] std::vector<std::string> command(const char* program) const;
  Result<void> refresh_lists();

  Host& host_;
  BakeSteps& steps_;
  const std::map<std::string, std::string>& tools_;
  fs::path dir_;
  bool own_lists_ = false;
};

}  // namespace fuse
