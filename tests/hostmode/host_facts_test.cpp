#include <optional>
#include <random>
#include <set>

#include "base/posix_host.h"
#include "base/text.h"
#include "hostmode/accel.h"
#include "hostmode/capacity.h"
#include "hostmode/disk.h"
#include "hostmode/gpu_allocation.h"
#include "hostmode/user_net.h"
#include "tests/catch.h"
#include "tests/hostmode/test_dir.h"

namespace fuse {
namespace {

using Argv = std::vector<std::string>;

TEST_CASE("an overlay is made on the image, and grown when more was asked for") {
  CHECK(overlay_argv("qemu-img", "/i/base", "/v/disk.qcow2", 0) ==
        Argv{"qemu-img", "create", "-q", "-f", "qcow2", "-b", "/i/base", "-F", "qcow2",
             "/v/disk.qcow2"});
  CHECK(overlay_argv("qemu-img", "/i/base", "/v/disk.qcow2", 1U << 30U).back() == "1073741824");
  CHECK(overlay_bytes(0, 5) == 0);
  CHECK(overlay_bytes(1, 2ULL << 30U) == 0);
  CHECK(overlay_bytes(2, 2ULL << 30U) == 0);
  CHECK(overlay_bytes(3, 2ULL << 30U) == 3ULL << 30U);
}

TEST_CASE("qemu-img makes the disk, and its words are in the error when it cannot") {
  const TestDir dir;
  PosixHost host;
  const fs::path base = dir.path() / "base";
  REQUIRE(create_overlay(host, {"qemu-img", "create", "-q", "-f", "qcow2", base, "1M"}));

  CHECK(create_overlay(host, overlay_argv("qemu-img", base, dir.path() / "disk", 4U << 20U)));
  CHECK(fs::file_size(dir.path() / "disk") < 1U << 20U);
  const auto none =
      create_overlay(host, overlay_argv("qemu-img", dir.path() / "nothing", dir.path() / "d", 0));
  REQUIRE_FALSE(none);
  CHECK(none.error().message.find("nothing") != std::string::npos);
}

TEST_CASE("forwards are read from what QEMU prints") {
  const std::string printed =
      "Hub -1 (net0):\r\n"
      "  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n"
      "  TCP[ESTABLISHED]   21       10.0.2.15 49152      10.0.2.2    22     0     0\r\n"
      "  TCP[HOST_FORWARD]  14       127.0.0.1 40123       10.0.2.15  8080     0     0\r\n"
      "  UDP[HOST_FORWARD]  15       127.0.0.1 40124       10.0.2.15  53     0     0\r\n"
      "  TCP[HOST_FORWARD]  16       127.0.0.1 40125       10.0.2.15  22     0     0\r\n";
  CHECK(parse_usernet(printed) == std::vector<HostForward>{{40123, 8080}, {40125, 22}});
  CHECK(parse_usernet("").empty());
  CHECK(parse_usernet("TCP[HOST_FORWARD] 1 2 x 3 y").empty());
}

TEST_CASE("endpoints come back from net.json") {
  const std::vector<Endpoint> endpoints = {{"http", "127.0.0.1:40123", 8080, 40123}};
  const auto back = parse_net(net_text(endpoints));
  REQUIRE(back);
  CHECK(net_text(*back) == net_text(endpoints));
  CHECK_FALSE(parse_net("{\"endpoints\": 1}"));
}

TEST_CASE("the host's numbers are read as the kernel writes them") {
  CHECK(count_cpus("0-3\n").value() == 4);
  CHECK(count_cpus("0").value() == 1);
  CHECK(count_cpus("0-1,4,6-7").value() == 5);
  for (const std::string_view wrong : {"", "3-1", "a", "0-1-2", "-1", "0,"}) {
    INFO(wrong);
    CHECK_FALSE(count_cpus(wrong));
  }
  CHECK(total_ram_mb("MemFree: 1 kB\nMemTotal:       16384512 kB\n").value() == 16000);
  CHECK_FALSE(total_ram_mb("MemFree: 1 kB\n"));
  CHECK(arch_of("x86_64") == "amd64");
  CHECK(arch_of("aarch64") == "arm64");
  CHECK(arch_of("RISCV64") == "riscv64");
}

GpuGroup group_of(const std::string& number, const std::string& kind, std::size_t gpus) {
  GpuGroup group{.group = number, .kind = kind, .slots = {cat("0000:", number, ":00.0")}};
  for (std::size_t i = 0; i < gpus; ++i) {
    group.gpus.push_back({.uuid = cat("GPU-", number, "-", i), .model = cat("NVIDIA ", kind)});
  }
  return group;
}

TEST_CASE("an empty inventory refuses with the wire's text") {
  const auto kind = choose_groups({.count = 2, .kind = "a100", .uuids = {}}, {}, {});
  REQUIRE_FALSE(kind);
  CHECK(kind.error().code == ErrorCode::conflict);
  CHECK(kind.error().message ==
        "insufficient free gpus: requested 2 of kind 'a100', 0 available in complete iommu groups");
  const auto any = choose_groups({.count = 9, .kind = "", .uuids = {}}, {}, {});
  REQUIRE_FALSE(any);
  CHECK(any.error().message ==
        "insufficient free gpus: requested 9 of any kind, 0 available in complete iommu groups");
  const auto mig =
      choose_instances({.count = 2, .profile = "1g.10gb", .kind = "", .uuids = {}}, {}, {});
  REQUIRE_FALSE(mig);
  CHECK(mig.error().message ==
        "insufficient free mig instances: requested 2 x 1g.10gb of any kind, 0 free");
  CHECK(choose_groups({}, {}, {}).value().empty());
}

// The least number of groups that make the wish, by trying every subset: within one
// node when `near`.  Nothing when none does.
std::optional<std::size_t> fewest(const GpuWish& wish, const std::vector<GpuGroup>& inventory,
                                  const std::set<std::string>& taken, bool near) {
  std::optional<std::size_t> least;
  for (unsigned subset = 0; subset < 1U << inventory.size(); ++subset) {
    std::size_t gpus = 0;
    std::size_t groups = 0;
    bool allowed = true;
    std::set<std::optional<std::int32_t>> nodes;
    for (std::size_t i = 0; i < inventory.size(); ++i) {
      if ((subset >> i & 1U) == 0) continue;
      allowed = allowed && !taken.contains(inventory[i].group) &&
                (wish.kind.empty() || inventory[i].kind == "a100");
      gpus += inventory[i].gpus.size();
      ++groups;
      nodes.insert(inventory[i].numa);
    }
    const bool makes =
        allowed && gpus == static_cast<std::size_t>(wish.count) && (!near || nodes.size() == 1);
    if (makes && (!least || groups < *least)) least = groups;
  }
  return least;
}

TEST_CASE("a choice that exists is found: on one node where it can be, of the fewest groups") {
  std::minstd_rand random(20261130);
  for (int round = 0; round < 400; ++round) {
    std::vector<GpuGroup> inventory;
    std::set<std::string> taken;
    for (std::size_t i = 0; i < 1 + random() % 7; ++i) {
      inventory.push_back(group_of(cat(i), random() % 3 == 0 ? "l40s" : "a100", 1 + random() % 4));
      if (random() % 5 != 0) inventory.back().numa = static_cast<std::int32_t>(random() % 2);
      if (random() % 4 == 0) taken.insert(cat(i));
    }
    const GpuWish wish{.count = static_cast<std::int32_t>(1 + random() % 8),
                       .kind = random() % 2 == 0 ? "A100" : "",
                       .uuids = {}};
    const auto near = fewest(wish, inventory, taken, true);
    const auto far = fewest(wish, inventory, taken, false);

    const auto chosen = choose_groups(wish, inventory, taken);

    REQUIRE(chosen.has_value() == far.has_value());
    if (!chosen) continue;
    std::size_t sum = 0;
    std::set<std::optional<std::int32_t>> nodes;
    for (const std::size_t i : *chosen) {
      sum += inventory[i].gpus.size();
      nodes.insert(inventory[i].numa);
      CHECK_FALSE(taken.contains(inventory[i].group));
    }
    CHECK(sum == static_cast<std::size_t>(wish.count));
    CHECK(chosen->size() == (near ? *near : *far));
    if (near) CHECK(nodes.size() == 1);
  }
}

TEST_CASE("an instance with graphics serves a plain wish where there is no plain one") {
  const std::vector<MigInstance> inventory = {{"U1", "1g.24gb+gfx", "rtx", "G"},
                                              {"U2", "2g.48gb", "rtx", "G"},
                                              {"U3", "2g.48gb+gfx", "rtx", "G"}};
  const auto chosen = [&](const std::string& profile, std::vector<std::string> uuids) {
    return choose_instances({.count = 1, .profile = profile, .kind = "", .uuids = std::move(uuids)},
                            inventory, {});
  };
  CHECK(chosen("1g.24gb", {}).value() == std::vector<std::size_t>{0});
  CHECK(chosen("1g.24gb", {"U1"}).value() == std::vector<std::size_t>{0});
  CHECK(chosen("2g.48gb", {}).value() == std::vector<std::size_t>{1});
  CHECK_FALSE(chosen("2g.48gb", {"U3"}));
}

TEST_CASE("named GPUs are had exactly, with nothing beside them") {
  const std::vector<GpuGroup> inventory = {group_of("1", "a100", 1), group_of("2", "a100", 2)};
  CHECK(choose_groups({.count = 1, .kind = "", .uuids = {"GPU-1-0"}}, inventory, {}).value() ==
        std::vector<std::size_t>{0});
  CHECK(choose_groups({.count = 2, .kind = "", .uuids = {"GPU-2-1", "GPU-2-0"}}, inventory, {})
            .value() == std::vector<std::size_t>{1});
  CHECK_FALSE(choose_groups({.count = 1, .kind = "", .uuids = {"GPU-2-0"}}, inventory, {}));
  CHECK_FALSE(choose_groups({.count = 1, .kind = "", .uuids = {"GPU-9-0"}}, inventory, {}));
  CHECK_FALSE(choose_groups({.count = 1, .kind = "", .uuids = {"GPU-1-0"}}, inventory, {"1"}));
}

TEST_CASE("a named MIG instance that cannot be had says why") {
  const std::vector<MigInstance> inventory = {{"U1", "1g.10gb", "a100", "G"},
                                              {"U2", "1g.10gb", "h100", "G"},
                                              {"U3", "2g.20gb", "a100", "G"}};
  const auto refusal = [&](std::vector<std::string> uuids, std::set<std::string> taken) {
    const auto chosen = choose_instances(
        {.count = 1, .profile = "1g.10gb", .kind = "a100", .uuids = std::move(uuids)}, inventory,
        taken);
    return chosen ? "" : chosen.error().message;
  };
  CHECK(refusal({"U1"}, {}).empty());
  CHECK(refusal({"U9"}, {}) == "mig instance U9 not in host inventory");
  CHECK(refusal({"U3"}, {}) == "mig instance U3 is profile '2g.20gb', not '1g.10gb'");
  CHECK(refusal({"U2"}, {}) == "mig instance U2 is kind 'h100', not 'a100'");
  CHECK(refusal({"U1"}, {"U1"}) == "mig instance U1 already attached to another vm");
  CHECK(refusal({"U1", "U1"}, {}) == "mig instance U1 requested more than once");
  CHECK(choose_instances({.count = 2, .profile = "1G.10GB", .kind = "", .uuids = {}}, inventory, {})
            .value() == std::vector<std::size_t>{0, 1});
}

struct Trials {
  int made = 0;
  Result<void> outcome{};
  KvmTry attempt() {
    return [this]() -> Result<void> {
      ++made;
      return outcome;
    };
  }
};

TEST_CASE("KVM is used only when a guest has run under it, and tried once per host") {
  const TestDir dir;
  PosixHost host;
  NullLog log;
  const fs::path cache = dir.path() / "accel.json";
  const KvmSubject subject{"boot-1", "6.1", "/usr/bin/qemu 1 2"};
  Trials hangs{.outcome = Error{ErrorCode::internal, "no hello within 5 s"}};

  const auto first =
      AccelChooser(host, log, cache).choose(AccelPolicy::automatic, {}, subject, hangs.attempt());
  const auto again =
      AccelChooser(host, log, cache).choose(AccelPolicy::automatic, {}, subject, hangs.attempt());

  REQUIRE(first);
  CHECK(first->accel == Accel::tcg);
  CHECK(first->reason == "KVM opens, but a guest did not run under it: no hello within 5 s");
  CHECK(again.value().accel == Accel::tcg);
  CHECK(hangs.made == 1);

  Trials works;
  KvmSubject rebooted = subject;
  rebooted.boot_id = "boot-2";
  CHECK(AccelChooser(host, log, cache)
            .choose(AccelPolicy::automatic, {}, rebooted, works.attempt())
            .value()
            .accel == Accel::kvm);
  CHECK(works.made == 1);
  write_text(cache, "{damaged");
  CHECK(AccelChooser(host, log, cache)
            .choose(AccelPolicy::automatic, {}, rebooted, works.attempt())
            .value()
            .accel == Accel::kvm);
  CHECK(works.made == 2);
}

TEST_CASE("what is asked for is done, or refused in words") {
  const TestDir dir;
  PosixHost host;
  NullLog log;
  AccelChooser chooser(host, log, dir.path() / "accel.json");
  Trials trials;
  const Error closed{ErrorCode::internal, "open /dev/kvm: Permission denied"};

  CHECK(chooser.choose(AccelPolicy::tcg, {}, {}, trials.attempt()).value().accel == Accel::tcg);
  CHECK(chooser.choose(AccelPolicy::kvm, {}, {}, trials.attempt()).value().accel == Accel::kvm);
  const auto refused = chooser.choose(AccelPolicy::kvm, closed, {}, trials.attempt());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "KVM was asked for: open /dev/kvm: Permission denied");
  const auto without = chooser.choose(AccelPolicy::automatic, closed, {}, trials.attempt());
  CHECK(without.value().reason == "no KVM: open /dev/kvm: Permission denied");
  CHECK(trials.made == 0);
}

}  // namespace
}  // namespace fuse
