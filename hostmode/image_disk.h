#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hostmode/image_packages.h"

namespace fuse {

struct DiskPlan {
  Distribution distribution{};
  std::vector<std::string> packages{};  // besides the essential ones
  std::vector<std::string> hooks{};     // shell commands at its end; "$1" is the root
  std::uint64_t bytes = 0;              // size of the file system
  bool as_root = false;
};

// The programs that make_disk() needs.
std::vector<Tool> disk_tools(bool as_root);

// The argv that sets up a root file system from `sources`: into the folder
// `target` as root, else into the tar archive `target`.
std::vector<std::string> bootstrap_argv(const std::string& mmdebstrap, const DiskPlan& plan,
                                        const std::vector<PackageSource>& sources,
                                        const fs::path& target);

// Why a user who is not root cannot have a root file system set up here, with the
// way out; empty when he can.  `subuid` and `subgid` are the texts of those files.
std::string user_bake_objection(const std::string& user, std::uint32_t uid, std::string_view subuid,
                                std::string_view subgid);

// Makes a qcow2 with one ext4 file system that holds a Debian root, from the
// packages that this machine's apt offers.  Everything is written below `work`.
// Returns the file.
Result<fs::path> make_disk(Host& host, BakeSteps& steps,
                           const std::map<std::string, std::string>& tools, const fs::path& work,
                           const DiskPlan& plan);

}  // namespace fuse
