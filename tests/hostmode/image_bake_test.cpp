#include "hostmode/image_bake.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/command.h"
#include "base/crypto.h"
#include "hostmode/image_containers.h"
#include "hostmode/image_disk.h"
#include "hostmode/image_files.h"
#include "hostmode/image_kernel.h"
#include "hostmode/image_packages.h"
#include "tests/hostmode/image_fixture.h"

namespace fuse {
namespace {

using Argv = std::vector<std::string>;

// The real machine with another /etc/os-release.
class OtherDistribution final : public Host {
 public:
  explicit OtherDistribution(std::string release) : release_(std::move(release)) {}
  Result<std::string> read_file(const fs::path& file) override {
    if (file == "/etc/os-release") return release_;
    return real_.read_file(file);
  }
  Result<void> write_file(const fs::path& file, std::string_view text) override {
    return real_.write_file(file, text);
  }
  Result<void> replace_file(const fs::path& file, std::string_view text, mode_t mode) override {
    return real_.replace_file(file, text, mode);
  }
  Result<fs::path> read_link(const fs::path& link) override { return real_.read_link(link); }
  Result<std::vector<std::string>> list_dir(const fs::path& dir) override {
    return real_.list_dir(dir);
  }
  Result<void> make_dirs(const fs::path& dir, mode_t mode) override {
    return real_.make_dirs(dir, mode);
  }
  Result<void> remove_all(const fs::path& path) override { return real_.remove_all(path); }
  Result<std::unique_ptr<Process>> spawn(const SpawnSpec& spec) override {
    return real_.spawn(spec);
  }

 private:
  std::string release_;
  PosixHost real_{};
};

std::vector<std::string> leftovers(const ImageStore& store) {
  std::vector<std::string> names;
  for (const std::string& name : PosixHost().list_dir(store.dir()).value()) {
    if (name.starts_with(".bake-") || name.ends_with(".json")) names.push_back(name);
  }
  return names;
}

TEST_CASE("a bake that fails names the image and leaves nothing behind") {
  const StoreFixture images;
  OtherDistribution host("ID=fedora\nVERSION_ID=40\n");
  SystemClock clock;
  const auto baked = bake_image(images.store, host, clock, "micro", {});
  REQUIRE_FALSE(baked);
  CHECK(baked.error().code == ErrorCode::unimplemented);
  CHECK(baked.error().message ==
        "bake image 'micro': images are baked on Debian and Ubuntu; this is fedora");
  CHECK(leftovers(images.store).empty());
  CHECK(bake_image(images.store, host, clock, "../x", {}).error().code ==
        ErrorCode::invalid_argument);
}

TEST_CASE("a name is baked once at a time") {
  const StoreFixture images;
  OtherDistribution host("ID=fedora\n");
  SystemClock clock;
  fs::create_directories(images.store.dir() / ".locks");
  const auto lock = try_lock_file(images.store.dir() / ".locks" / sha256_hex("micro"));
  REQUIRE(lock.value().has_value());
  const auto refused = bake_image(images.store, host, clock, "micro", {});
  CHECK(refused.error().code == ErrorCode::conflict);
  CHECK(refused.error().message == "image 'micro' is being baked already");
  CHECK(bake_image(images.store, host, clock, "other", {}).error().code ==
        ErrorCode::unimplemented);
}

TEST_CASE("missing programs are all named, each with its package") {
  const std::vector<Tool> tools{{"sh", "dash"}, {"mkfs.none", "e2none"}, {"other-none", "e2none"}};
  const auto found = find_tools(tools, default_tool_folders);
  REQUIRE_FALSE(found);
  CHECK(found.error().message ==
        "programs that a bake needs are missing: mkfs.none (package e2none), other-none (package "
        "e2none); install them: apt-get install e2none");
  const std::vector<Tool> present{{"sh", "dash"}};
  CHECK(find_tools(present, "/nowhere:/bin").value().at("sh") == "/bin/sh");
}

TEST_CASE("a step tells when it begins and when it has ended well") {
  PosixHost host;
  SystemClock clock;
  std::vector<std::pair<std::string, bool>> told;
  BakeSteps steps(host, clock,
                  [&](const BakeProgress& now) { told.emplace_back(now.step, now.finished); }, {});
  REQUIRE(steps.step("one", [] { return Result<void>(); }));
  const auto failed = steps.step("two", []() -> Result<void> {
    return Error{ErrorCode::unavailable, "no luck"};
  });
  CHECK(failed.error().message == "two: no luck");
  CHECK(told ==
        std::vector<std::pair<std::string, bool>>{{"one", false}, {"one", true}, {"two", false}});
}

TEST_CASE("a program that fails is quoted with its last lines") {
  const ScratchDir scratch;
  PosixHost host;
  SystemClock clock;
  BakeSteps steps(host, clock, nullptr, {});
  CHECK(steps.run({"/bin/sh", "-c", "echo out; echo err >&2"}, scratch.path()).value() == "out\n");
  CHECK(steps.run({"/bin/sh", "-c", "seq 100 >&2; exit 7"}, scratch.path()).error().message ==
        "`/bin/sh -c 'seq 100 >&2; exit 7'` exited with 7:\n  86\n  87\n  88\n  89\n  90\n  91\n  "
        "92\n  93\n  94\n  95\n  96\n  97\n  98\n  99\n  100");
  CHECK(steps.run({"/bin/sh", "-c", "echo only stdout; kill -9 $$"}, scratch.path())
            .error()
            .message ==
        "`/bin/sh -c 'echo only stdout; kill -9 $$'` was killed by signal 9:\n  only stdout");
  CHECK(steps.run({"/bin/false"}, scratch.path()).error().message == "`/bin/false` exited with 1");
}

TEST_CASE("a request to stop ends the program of a step") {
  const ScratchDir scratch;
  PosixHost host;
  SystemClock clock;
  std::stop_source stop;
  stop.request_stop();
  BakeSteps steps(host, clock, nullptr, stop.get_token());
  // Its own pid, so that it can be looked for afterwards.
  const auto ended = steps.run({"/bin/sh", "-c", "echo $$ >pid; exec sleep 1000"}, scratch.path());
  CHECK(ended.error().message == "stopped on request");
  const std::string pid(trim(*host.read_file(scratch.path() / "pid")));
  CHECK_FALSE(fs::exists(fs::path("/proc") / pid));
}

TEST_CASE("the distribution is read from os-release") {
  const auto debian = parse_os_release(
      "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\n"
      "VERSION_CODENAME=bookworm\nID=debian\n");
  REQUIRE(debian);
  CHECK(debian->id == "debian");
  CHECK(debian->version == "12");
  CHECK(debian->codename == "bookworm");
  CHECK_FALSE(parse_os_release("ID=debian\n"));
  CHECK(parse_os_release("").error().message ==
        "images are baked on Debian and Ubuntu; this is neither");
}

TEST_CASE("only the distribution's own sources are used, each once") {
  const Distribution debian{.id = "debian", .version = "12", .codename = "bookworm"};
  const std::string targets =
      "Debian|bookworm|main|http://mirror.example/debian/\n"
      "Debian|bookworm|contrib|http://mirror.example/debian/\n"
      "Debian|bookworm|main|http://mirror.example/debian/\n"
      "Debian|bookworm-security|main|http://mirror.example/security/\n"
      "Debian|bookworm-backports|main|http://mirror.example/debian/\n"
      "Debian|trixie|main|http://mirror.example/debian/\n"
      "Vendor|bookworm|main|http://vendor.example/\n"
      "\n";
  CHECK(parse_source_targets(targets, debian) ==
        std::vector<PackageSource>{
            {"http://mirror.example/debian/", "bookworm", {"main", "contrib"}},
            {"http://mirror.example/security/", "bookworm-security", {"main"}}});
  CHECK(parse_source_targets("", debian).empty());
}

TEST_CASE("the kernel behind a metapackage is the package that it depends on") {
  CHECK(depended_package("Package: linux-image-cloud-amd64\nVersion: 6.1.192-3\n"
                         "Depends: base-files, linux-image-6.1.0-57-cloud-amd64 (= 6.1.192-3)\n",
                         "linux-image-") == "linux-image-6.1.0-57-cloud-amd64");
  CHECK(depended_package("Depends: libc6\n", "linux-image-").empty());
  CHECK(depended_package("Pre-Depends: linux-image-1\n", "linux-image-").empty());
}

TEST_CASE("the root file system is set up from those sources, without what jobs do not need") {
  DiskPlan plan{.distribution = {.id = "debian", .version = "12", .codename = "bookworm"},
                .packages = {"python3", "procps"},
                .bytes = 1,
                .as_root = true};
  const std::vector<PackageSource> sources{{"http://mirror.example/debian/", "bookworm", {"main"}}};
  Argv expected{"/usr/bin/mmdebstrap",
                "--mode=root",
                "--variant=minbase",
                "--format=directory",
                "--dpkgopt=path-exclude=/usr/share/man/*",
                "--dpkgopt=path-exclude=/usr/share/doc/*",
                "--dpkgopt=path-include=/usr/share/doc/*/copyright",
                "--dpkgopt=path-exclude=/usr/share/locale/*",
                "--dpkgopt=path-exclude=/usr/share/info/*",
                "--dpkgopt=path-exclude=/usr/share/lintian/*",
                R"(--customize-hook=rm -f "$1/etc/hostname" "$1/etc/resolv.conf")",
                R"(--customize-hook=printf '127.0.0.1 localhost\n::1 localhost\n' >"$1/etc/hosts")",
                "--include=python3,procps",
                "bookworm",
                "/w/root",
                "deb http://mirror.example/debian/ bookworm main"};
  CHECK(bootstrap_argv("/usr/bin/mmdebstrap", plan, sources, "/w/root") == expected);
  plan.as_root = false;
  expected[1] = "--mode=unshare";
  expected[3] = "--format=tar";
  CHECK(bootstrap_argv("/usr/bin/mmdebstrap", plan, sources, "/w/root") == expected);
}

TEST_CASE("an image with containers has podman set up for a guest without systemd") {
  DiskPlan plan{.distribution = {.id = "debian", .version = "12", .codename = "bookworm"},
                .packages = container_packages(),
                .hooks = container_hooks(),
                .as_root = true};
  const Argv argv = bootstrap_argv("mmdebstrap", plan, {}, "/w/root");
  CHECK(std::ranges::find(argv,
                          "--include=aardvark-dns,catatonit,crun,iptables,netavark,podman,"
                          "podman-compose") != argv.end());
  // The hooks do what they say, in any root.
  const ScratchDir scratch;
  scratch.write("etc/cni/net.d/87-podman-bridge.conflist", "{}");
  scratch.write("etc/containers/policy.json", "{}");
  PosixHost host;
  for (const std::string& hook : container_hooks()) {
    CHECK(require_command(host, {.argv = {"sh", "-c", hook, "sh", scratch.path()}}));
  }
  CHECK_FALSE(fs::exists(scratch.path() / "etc/cni/net.d/87-podman-bridge.conflist"));
  CHECK(host.read_file(scratch.path() / "etc/containers/containers.conf").value() ==
        "[network]\nnetwork_backend = \"netavark\"\n[engine]\ncgroup_manager = \"cgroupfs\"\n"
        "events_logger = \"file\"\n[containers]\nlog_driver = \"k8s-file\"\n");
  CHECK(host.read_file(scratch.path() / "etc/containers/registries.conf.d/fuse.conf").value() ==
        "unqualified-search-registries = [\"docker.io\"]\n");
}

TEST_CASE("a user without a range of ids is told how to get one") {
  CHECK(user_bake_objection("ana", 1000, "ana:100000:65536\n", "root:1:1\nana:100000:65536\n")
            .empty());
  CHECK(user_bake_objection("ana", 1000, "1000:100000:65536\n", "1000:100000:65536\n").empty());
  CHECK(user_bake_objection("ana", 1000, "anabel:100000:65536\n", "") ==
        "user ana has no range of user ids of his own in /etc/subuid, and without one only root "
        "can set up a Debian root file system; give him one: usermod --add-subuids 100000-165535 "
        "--add-subgids 100000-165535 ana");
}

TEST_CASE("modules that are built in or optional and missing are left out of the archive") {
  const ScratchDir scratch;
  scratch.write("modules/modules.builtin", "kernel/fs/ext4/ext4.ko\n");
  scratch.write("modules/kernel/a/virtio-net.ko", "not a module");
  PosixHost host;
  SystemClock clock;
  BakeSteps steps(host, clock, nullptr, {});
  const FetchedKernel kernel{.version = "1", .image = {}, .modules = scratch.path() / "modules"};
  const std::vector<WantedModule> builtin{{"ext4", false}, {"virtio_rng", true}};
  const auto archive = module_archive(steps, scratch.path(), kernel, builtin);
  REQUIRE(archive);
  CHECK(archive->find("lib/modules/fuse.order") != std::string::npos);
  CHECK(archive->find(".ko") == std::string::npos);
  const std::vector<WantedModule> missing{{"virtio_blk", false}};
  CHECK(module_archive(steps, scratch.path(), kernel, missing).error().message ==
        "kernel module virtio_blk: this kernel has no module virtio_blk");
  const std::vector<WantedModule> broken{{"virtio_net", false}};
  CHECK(module_archive(steps, scratch.path(), kernel, broken).error().message ==
        "kernel module virtio_net: not a kernel module: no ELF file");
}

}  // namespace
}  // namespace fuse
