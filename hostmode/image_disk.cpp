#include "hostmode/image_disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/command.h"
#include "base/fd.h"
#include "base/text.h"

namespace fuse {
namespace {

// What a job has no use for.  Stays in force in the image, so that packages
// installed later are as small.
constexpr std::array<const char*, 6> left_out{
    "path-exclude=/usr/share/man/*",           "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright", "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/info/*",          "path-exclude=/usr/share/lintian/*"};

// The set-up copies this machine's name and resolver into the root; the guest has
// its own.
constexpr std::array<const char*, 2> hooks{
    R"(rm -f "$1/etc/hostname" "$1/etc/resolv.conf")",
    R"(printf '127.0.0.1 localhost\n::1 localhost\n' >"$1/etc/hosts")"};

// By the name service, which a static program cannot ask itself.
Result<std::string> user_name(Host& host) {
  const auto name = require_command(host, {.argv = {"id", "-un"}});
  if (!name) return name.error();
  return std::string(trim(*name));
}

Result<void> check_user(Host& host) {
  const auto name = user_name(host);
  const std::string user = name ? *name : "";
  const auto subuid = host.read_file("/etc/subuid");
  const auto subgid = host.read_file("/etc/subgid");
  const std::string objection = user_bake_objection(
      user, ::geteuid(), subuid ? *subuid : std::string(), subgid ? *subgid : std::string());
  if (objection.empty()) return {};
  return Error{ErrorCode::unavailable, objection};
}

bool has_line_for(std::string_view file, const std::string& user, std::uint32_t uid) {
  for (const std::string& line : split(file, '\n')) {
    if (line.starts_with(cat(user, ":")) || line.starts_with(cat(uid, ":"))) return true;
  }
  return false;
}

Result<std::vector<PackageSource>> find_sources(BakeSteps& steps,
                                                const std::map<std::string, std::string>& tools,
                                                const fs::path& work,
                                                const Distribution& distribution) {
  const auto targets = steps.run({tools.at("apt-get"), "indextargets", "--format",
                                  std::string(source_targets_format), "Created-By: Packages"},
                                 work);
  if (!targets) return targets.error();
  auto sources = parse_source_targets(*targets, distribution);
  for (const PackageSource& source : sources) {
    if (source.suite == distribution.codename) return sources;
  }
  return Error{ErrorCode::unavailable,
               cat("apt on this machine knows no packages of ", distribution.id, " ",
                   distribution.codename, "; run `apt-get update` as root, then bake again")};
}

Result<void> make_sparse_file(const fs::path& file, std::uint64_t bytes) {
  const Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid()) return errno_error(cat("create ", file.native()), errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0) return {};
  return errno_error(cat("grow ", file.native()), errno);
}

}  // namespace

std::vector<Tool> disk_tools(bool as_root) {
  std::vector<Tool> tools{
      {"mmdebstrap", "mmdebstrap"}, {"mkfs.ext4", "e2fsprogs"}, {"qemu-img", "qemu-utils"}};
  if (!as_root) {
    tools.insert(tools.end(), {{"newuidmap", "uidmap"}, {"fakeroot", "fakeroot"}, {"tar", "tar"}});
  }
  return tools;
}

std::string user_bake_objection(const std::string& user, std::uint32_t uid, std::string_view subuid,
                                std::string_view subgid) {
  const bool uids = has_line_for(subuid, user, uid);
  const bool gids = has_line_for(subgid, user, uid);
  if (uids && gids) return {};
  const std::string who = user.empty() ? cat("user ", uid) : cat("user ", user);
  return cat(who, " has no range of user ids of his own in ", uids ? "/etc/subgid" : "/etc/subuid",
             ", and without one only root can set up a Debian root file system; give him one: "
             "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 ",
             user.empty() ? "NAME" : user);
}

std::vector<std::string> bootstrap_argv(const std::string& mmdebstrap, const DiskPlan& plan,
                                        const std::vector<PackageSource>& sources,
                                        const fs::path& target) {
  std::vector<std::string> argv{mmdebstrap, plan.as_root ? "--mode=root" : "--mode=unshare",
                                "--variant=minbase",
                                plan.as_root ? "--format=directory" : "--format=tar"};
  for (const char* option : left_out) argv.push_back(cat("--dpkgopt=", option));
  for (const char* hook : hooks) argv.push_back(cat("--customize-hook=", hook));
  for (const std::string& hook : plan.hooks) argv.push_back(cat("--customize-hook=", hook));
  if (!plan.packages.empty()) argv.push_back(cat("--include=", join(plan.packages, ",")));
  argv.push_back(plan.distribution.codename);
  argv.push_back(target.native());
  for (const PackageSource& source : sources) {
    argv.push_back(cat("deb ", source.uri, " ", source.suite, " ", join(source.components, " ")));
  }
  return argv;
}

namespace {

// The way to one disk.
class DiskMaker {
 public:
  DiskMaker(Host& host, BakeSteps& steps, const std::map<std::string, std::string>& tools,
            const fs::path& work, const DiskPlan& plan)
      : host_(host), steps_(steps), tools_(tools), work_(work), plan_(plan) {}

  Result<void> set_up(const std::vector<PackageSource>& sources) {
    return run(bootstrap_argv(tools_.at("mmdebstrap"), plan_, sources,
                              plan_.as_root ? root_ : work_ / "root.tar"));
  }

  Result<void> make_file_system() {
    // A user cannot give files to others; fakeroot remembers whose they should be.
    std::vector<std::string> mkfs;
    if (!plan_.as_root) {
      if (auto unpacked = unpack(); !unpacked) return unpacked;
      mkfs = {tools_.at("fakeroot"), "-i", owners_.native(), "--"};
    }
    if (auto made = make_sparse_file(raw_, plan_.bytes); !made) return made;
    mkfs.insert(mkfs.end(),
                {tools_.at("mkfs.ext4"), "-F", "-q", "-L", "fuse-root", "-m", "0", "-O",
                 "^has_journal", "-E", "lazy_itable_init=0", "-d", root_.native(), raw_.native()});
    return run(mkfs);
  }

  Result<void> compress(const fs::path& disk) {
    return run({tools_.at("qemu-img"), "convert", "-c", "-O", "qcow2", "-o",
                "compression_type=zstd", raw_.native(), disk.native()});
  }

 private:
  Result<void> run(const std::vector<std::string>& argv) {
    if (const auto ran = steps_.run(argv, work_); !ran) return ran.error();
    return {};
  }

  Result<void> unpack() {
    if (auto made = host_.make_dirs(root_, 0755); !made) return made;
    return run({tools_.at("fakeroot"), "-s", owners_.native(), "--", tools_.at("tar"), "--extract",
                "--numeric-owner", "--preserve-permissions", "--exclude=./dev/*", "--file",
                (work_ / "root.tar").native(), "--directory", root_.native()});
  }

  Host& host_;
  BakeSteps& steps_;
  const std::map<std::string, std::string>& tools_;
  const fs::path work_;
  const DiskPlan& plan_;
  const fs::path root_ = work_ / "root";
  const fs::path raw_ = work_ / "disk.raw";
  const fs::path owners_ = work_ / "owners";
};

}  // namespace

Result<fs::path> make_disk(Host& host, BakeSteps& steps,
                           const std::map<std::string, std::string>& tools, const fs::path& work,
                           const DiskPlan& plan) {
  if (!plan.as_root) {
    if (auto checked = check_user(host); !checked) return checked.error();
  }
  const auto sources = find_sources(steps, tools, work, plan.distribution);
  if (!sources) return sources.error();
  DiskMaker maker(host, steps, tools, work, plan);
  auto done = steps.step(cat("set up ", plan.distribution.id, " ", plan.distribution.version),
                         [&] { return maker.set_up(*sources); });
  if (!done) return done.error();
  done = steps.step("make the disk", [&] { return maker.make_file_system(); });
  if (!done) return done.error();
  const fs::path disk = work / "disk.qcow2";
  done = steps.step("compress the disk", [&] { return maker.compress(disk); });
  if (!done) return done.error();
  return disk;
}

}  // namespace fuse
