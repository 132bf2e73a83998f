#include "hostmode/mig/mig_apply.h"

#include <algorithm>

#include "base/text.h"
#include "hostmode/mig/mig_undo.h"
#include "tests/catch.h"
#include "tests/hostmode/devices/vgpu_sim.h"

namespace fuse {
namespace {

using Texts = std::vector<std::string>;
const DevicePaths paths{.dir = "/var/lib/fuse"};
const std::string card = "0000:0f:00.0";

// An A100 with virtual functions on an mdev host, and a second one without.
struct MdevBox {
  SimBox box{};
  SimSmi smi{box};
  std::unique_ptr<MdevSim> mdev{};
  int uuids = 0;
  Texts told{};

  MdevBox() {
    add_mig_card(box, card, "20b0");
    add_mig_card(box, "0000:10:00.0", "20b0");
    smi.add(card, "20b0", "NVIDIA A100-SXM4-40GB");
    smi.add("0000:10:00.0", "20b0", "NVIDIA A100-SXM4-40GB");
    Texts functions;
    for (int i = 1; i <= 7; ++i) functions.push_back(cat("0000:0f:00.", i));
    mdev = std::make_unique<MdevSim>(box, smi, card, functions);
  }

  MigApplyOptions options(std::vector<LayoutWish> wishes) {
    return {.wishes = std::move(wishes),
            .cards = {},
            .writes = {.write = box.write_within()},
            .new_uuid = [this] { return cat("uuid-", ++uuids); },
            .tell = [this](const std::string& step) { told.push_back(step); }};
  }
  Result<MigOutcome> apply(std::vector<LayoutWish> wishes) {
    return apply_mig(box, paths, options(std::move(wishes)));
  }
  Result<void> destroy(const std::string& uuid) {
    return destroy_mig(box, paths, uuid, {.write = box.write_within()});
  }
  Texts layout(const std::string& address = card) {
    Texts out;
    for (const auto& [id, instance] : smi.card(address).instances) {
      out.push_back(cat(instance.profile.name, '@', instance.start));
    }
    std::ranges::sort(out);
    return out;
  }
  std::string file(const std::string& name) { return box.read_file(paths.dir / name).value(); }
  bool has(const std::string& name) { return static_cast<bool>(box.read_file(paths.dir / name)); }
};

TEST_CASE("what is missing is carved on one card, made into devices and written down") {
  MdevBox here;
  const auto done = here.apply({{"3g.20gb", 1}, {"1g.5gb", 2}});
  REQUIRE(done);
  CHECK(done->made == 3);
  CHECK(here.layout() == Texts{"1g.5gb@2", "1g.5gb@3", "3g.20gb@4"});
  CHECK_FALSE(here.smi.card("0000:10:00.0").mig);
  CHECK(here.mdev->devices().size() == 3);
  CHECK(here.told.front() == "switch MIG mode of 0000:0f:00.0 on");
  CHECK_FALSE(here.has("mig-journal.txt"));
  CHECK(here.file("device-roles.txt").ends_with("0000:0f:00.0 mig\n"));
  const auto lines = parse_mig_inventory(here.file("mig-inventory.txt"), "f").value();
  REQUIRE(lines.size() == 3);
  for (const InventoryInstance& line : lines) {
    CHECK(line.kind == "a100-sxm4-40gb");
    CHECK(line.parent == here.smi.card(card).uuid);
    CHECK(line.path == cat("/sys/bus/mdev/devices/", line.uuid));
    CHECK(line.mig.starts_with("MIG-"));
  }

  SECTION("and once more changes nothing") {
    const int changes = here.smi.changes;
    const auto again = here.apply({{"3g.20gb", 1}, {"1g.5gb", 2}});
    REQUIRE(again);
    CHECK(again->made == 0);
    CHECK(here.smi.changes == changes);
    CHECK(parse_mig_inventory(here.file("mig-inventory.txt"), "f").value() == lines);
  }
  SECTION("after a reboot the layout comes back with the same names") {
    here.smi.card(card).instances.clear();
    here.smi.card(card).mig = here.smi.card(card).pending = false;
    for (const std::string& uuid : here.mdev->devices()) {
      REQUIRE(here.box.write_file(cat("/sys/bus/mdev/devices/", uuid, "/remove"), "1"));
    }
    const auto again = here.apply({});
    REQUIRE(again);
    CHECK(here.layout() == Texts{"1g.5gb@2", "1g.5gb@3", "3g.20gb@4"});
    CHECK(here.mdev->devices() == Texts{"uuid-1", "uuid-2", "uuid-3"});
  }
  SECTION("an instance in use is not destroyed, another is, by either of its names") {
    here.box.add_process(55, "qemu", "fuse.service", {"/dev/vfio/71"});
    const auto views = list_mig(here.box, paths).value();
    REQUIRE(views.size() == 3);
    const auto used = std::ranges::find_if(views, [](const auto& v) { return !v.holders.empty(); });
    REQUIRE(used != views.end());
    const auto refused = here.destroy(used->device);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::conflict);
    CHECK(refused.error().message ==
          cat(used->device, " is in use: pid 55 (qemu, fuse.service) has /dev/vfio/71 open"));
    CHECK(here.layout().size() == 3);
    const auto free = std::ranges::find_if(views, [](const auto& v) { return v.holders.empty(); });
    REQUIRE(here.destroy(free->mig));
    CHECK(here.layout().size() == 2);
    CHECK(here.mdev->devices().size() == 2);
    CHECK(parse_mig_inventory(here.file("mig-inventory.txt"), "f").value().size() == 2);
    CHECK(here.destroy(free->mig).error().code == ErrorCode::not_found);
    CHECK_FALSE(here.has("mig-journal.txt"));
  }
}

TEST_CASE("what cannot fit is refused before anything changes") {
  MdevBox here;
  here.smi.card(card).mig = here.smi.card(card).pending = true;
  const auto slots = known_slots("20b0");
  const SlotProfile& one = slots->profiles.front();
  here.smi.card(card).instances = {{7, {one, 0}}, {8, {one, 1}}, {12, {one, 5}}};
  REQUIRE(here.box.make_dirs("/var/lib/fuse", 0755));
  REQUIRE(here.box.write_file("/var/lib/fuse/device-roles.txt", "0000:10:00.0 whole\n"));
  const auto refused = here.apply({{"3g.20gb", 1}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "there is no place for 1 x 3g.20gb: nothing was changed");
  CHECK(refused.error().details.at("reason") == "placement");
  CHECK(refused.error().details.at(card) ==
        "holds 1g.5gb at 0, 1g.5gb at 1, 1g.5gb at 5; 3g.20gb begins at 0 or 4 and takes 4");
  CHECK(here.smi.changes == 0);
  // Two slices still find their place between them.
  REQUIRE(here.apply({{"2g.10gb", 1}}));
  CHECK(here.layout() == Texts{"1g.5gb@0", "1g.5gb@1", "1g.5gb@5", "2g.10gb@2"});
  // Those of others are shown and not taken over.
  const auto views = list_mig(here.box, paths).value();
  CHECK(std::ranges::count_if(views, [](const auto& v) { return v.device.empty(); }) == 3);
}

TEST_CASE("a failure at any step leaves what was there before") {
  MdevBox here;
  const auto complaint = [&](std::vector<LayoutWish> wishes) {
    const auto refused = here.apply(std::move(wishes));
    REQUIRE_FALSE(refused);
    CHECK(here.layout().empty());
    CHECK_FALSE(here.smi.card(card).mig);
    CHECK(here.mdev->devices().empty());
    CHECK_FALSE(here.has("mig-journal.txt"));
    CHECK_FALSE(here.has("mig-inventory.txt"));
    return refused.error().message;
  };
  SECTION("the third instance is refused") {
    here.smi.refuse_creation = 2;
    CHECK(complaint({{"1g.5gb", 4}}) ==
          "make 1g.5gb at 4 of 0000:0f:00.0: nvidia-smi says: Unable to create a GPU instance on "
          "GPU  0 using profile 19: Insufficient Resources / Failed to create GPU instances: "
          "Insufficient Resources; what was done before it was undone");
  }
  SECTION("the compute instance inside fails") {
    here.smi.fail_compute = true;
    CHECK(complaint({{"1g.5gb", 1}})
              .starts_with("make 1g.5gb at 6 of 0000:0f:00.0: it got no compute instance: "));
  }
  SECTION("it says it made it, and did not") {
    here.smi.lose_creations = true;
    CHECK(complaint({{"1g.5gb", 1}})
              .starts_with("1g.5gb at 6 of 0000:0f:00.0 was made, but the card now holds nothing"));
  }
  SECTION("no device can be made of it") {
    here.box.refused.emplace("nvidia-474/create uuid-2",
                             Error{ErrorCode::internal, "write: Input/output error"});
    CHECK(complaint({{"1g.5gb", 2}}).find("Input/output error") != std::string::npos);
  }
  SECTION("the inventory cannot be written") {
    here.box.refused.emplace("replace /var/lib/fuse/mig-inventory",
                             Error{ErrorCode::internal, "No space left on device"});
    CHECK(complaint({{"1g.5gb", 2}}).starts_with("No space left on device"));
  }
  SECTION("the card wants a reset that it refuses") {
    here.smi.card(card).needs_reset = true;
    here.smi.reset_refused = true;
    here.box.add_process(9, "nvidia-persiste", "nvidia-persistenced.service", {"/dev/nvidia0"});
    here.box.add_file("/proc/driver/nvidia/gpus/0000:0f:00.0/information", "Device Minor: 1\n");
    const std::string said = complaint({{"1g.5gb", 1}});
    CHECK(
        said.starts_with("MIG mode of 0000:0f:00.0 cannot be switched on without a reset of the "
                         "card, which fails: GPU Reset couldn't run"));
  }
}

TEST_CASE("a reset is of that card alone") {
  MdevBox here;
  here.smi.card(card).needs_reset = true;
  REQUIRE(here.apply({{"1g.5gb", 1}}));
  for (const Texts& argv : here.box.ran) {
    if (argv.size() > 1 && argv[1] == "-r") CHECK(argv == Texts{"nvidia-smi", "-r", "-i", card});
  }
  CHECK(here.smi.card(card).mig);
}

// A machine that loses power in the middle of a change, which it finds later.
struct PowerLoss {};

TEST_CASE("after a crash at any step the next call undoes it and goes on") {
  int steps = 0;
  for (int crash_at = 0; steps == crash_at; ++crash_at) {
    MdevBox here;
    int at = 0;
    here.smi.before_change = [&] {
      if (at++ == crash_at) throw PowerLoss();
    };
    bool crashed = false;
    try {
      const auto done = here.apply({{"1g.5gb", 2}});
      CHECK(done.has_value());
    } catch (const PowerLoss&) {
      crashed = true;
    }
    here.smi.before_change = [] {};
    if (!crashed) {
      CHECK(crash_at == 3);  // the mode and two instances
      break;
    }
    ++steps;
    CHECK(here.has("mig-journal.txt"));
    REQUIRE(here.apply({{"1g.5gb", 2}}));
    CHECK(here.layout() == Texts{"1g.5gb@5", "1g.5gb@6"});
    CHECK(here.mdev->devices().size() == 2);
    CHECK_FALSE(here.has("mig-journal.txt"));
  }
}

TEST_CASE("a card that is held is not switched, and a host without vGPU says what it lacks") {
  SimBox box;
  SimSmi smi(box);
  add_mig_card(box, card, "20b0");
  smi.add(card, "20b0", "NVIDIA A100-SXM4-40GB");
  const MigApplyOptions options{.wishes = {{"1g.5gb", 1}},
                                .cards = {},
                                .writes = {.write = box.write_within()},
                                .new_uuid = [] { return std::string("u"); }};
  const auto bare = apply_mig(box, paths, options);
  REQUIRE_FALSE(bare);
  CHECK(bare.error().message.starts_with(
      "a VM cannot be given a MIG instance of 0000:0f:00.0: nothing here makes a device of a MIG "
      "instance"));
  CHECK(bare.error().message.find("needs a licence") != std::string::npos);
  CHECK(smi.changes == 0);

  box.add_process(7, "python3", "train.service", {"/dev/nvidia0"});
  box.add_file("/dev/nvidia0", "");
  const auto held = apply_mig(box, paths, options);
  REQUIRE_FALSE(held);
  CHECK(held.error().message ==
        "MIG mode of 0000:0f:00.0 cannot be switched on: it is in-use: pid 7 (python3, "
        "train.service) has /dev/nvidia0 open");
  CHECK(held.error().details.at("hint") == "stop it: systemctl stop train.service");
}

TEST_CASE("on a vendor-VFIO host an instance becomes a virtual function") {
  SimBox box;
  SimSmi smi(box);
  add_mig_card(box, "0000:26:00.0", "2bb5");
  smi.add("0000:26:00.0", "2bb5", "NVIDIA RTX PRO 6000 Blackwell Server Edition");
  const VendorVfioSim vfio(box, smi, "0000:26:00.0",
                           {"0000:26:00.4", "0000:26:00.5", "0000:26:00.6"});
  int uuids = 0;
  const MigApplyOptions options{.wishes = {{"2g.48gb+gfx", 1}, {"1g.24gb+gfx", 1}},
                                .cards = {},
                                .writes = {.write = box.write_within()},
                                .new_uuid = [&] { return cat("uuid-", ++uuids); }};
  const auto done = apply_mig(box, paths, options);
  REQUIRE(done);
  REQUIRE(done->instances.size() == 2);
  CHECK(vfio.type_of("0000:26:00.4") != "0");
  CHECK(vfio.type_of("0000:26:00.5") != "0");
  CHECK(vfio.type_of("0000:26:00.6") == "0");
  for (const InventoryInstance& line : done->instances) {
    CHECK(line.path.starts_with("/sys/bus/pci/devices/0000:26:00."));
    CHECK(line.kind == "rtx-pro-6000-blackwell-server-edition");
  }
  REQUIRE(destroy_mig(box, paths, done->instances.front().uuid, {.write = box.write_within()}));
  CHECK((vfio.type_of("0000:26:00.4") == "0" || vfio.type_of("0000:26:00.5") == "0"));
}

}  // namespace
}  // namespace fuse
