#include <csignal>

#include "base/text.h"
#include "hostmode/vm_record.h"
#include "tests/catch.h"
#include "tests/hostmode/agent_fixture.h"
#include "tests/hostmode/devices/boxes.h"

namespace fuse {
namespace {

const std::string card = "0000:09:00.0";

// This machine with the devices of a simulated one.
class HostWithDevices final : public Host {
 public:
  explicit HostWithDevices(PosixHost& real) : real_(real) {
    make_consumer_box(box);
    for (const std::string end : {".0", ".1", ".2", ".3"}) {
      const std::string address = card.substr(0, card.size() - 2) + end;
      if (!box.driver_of(address).empty()) box.unbind(address);
      box.bind(address, "vfio-pci");
    }
  }

  Result<std::string> read_file(const fs::path& file) override { return of(file).read_file(file); }
  Result<void> write_file(const fs::path& file, std::string_view text) override {
    return of(file).write_file(file, text);
  }
  Result<void> replace_file(const fs::path& file, std::string_view text, mode_t mode) override {
    return of(file).replace_file(file, text, mode);
  }
  Result<fs::path> read_link(const fs::path& link) override { return of(link).read_link(link); }
  Result<std::vector<std::string>> list_dir(const fs::path& dir) override {
    return of(dir).list_dir(dir);
  }
  Result<void> make_dirs(const fs::path& dir, mode_t mode) override {
    return real_.make_dirs(dir, mode);
  }
  Result<void> remove_all(const fs::path& path) override { return real_.remove_all(path); }
  Result<std::unique_ptr<Process>> spawn(const SpawnSpec& spec) override {
    return real_.spawn(spec);
  }

  SimBox box;

 private:
  Host& of(const fs::path& path) {
    const bool simulated = path.native().starts_with("/sys/bus/");
    return simulated ? static_cast<Host&>(box) : real_;
  }

  PosixHost& real_;
};

struct Bench {
  Bench() {
    qemus.config.devices.dir = qemus.root() / "devices";
    qemus.reset.writes.write = devices.box.write_within();
    write_text(qemus.config.devices.vfio(),
               cat("1 rtx ", card, " 0000:09:00.1 0000:09:00.2 0000:09:00.3 | uuid=GPU-a\n"));
    start();
  }
  void start() {
    agent.reset();
    agent = qemus.start_agent(devices).value();
  }
  Result<VmInfo> create(const std::string& name) {
    CreateVmRequest request{.name = name};
    request.gpus = 1;
    return agent->create_vm(request);
  }
  VmInfo made(const std::string& name) {
    const auto vm = create(name);
    if (!vm) FAIL(vm.error().message);
    return *vm;
  }
  [[nodiscard]] VmRecord record(const VmInfo& vm) {
    return read_vm_record(qemus.host, qemus.paths(), vm.uid).value();
  }
  [[nodiscard]] DeviceRelease receipt(const VmInfo& vm) {
    const auto text = read_text(qemus.paths().receipt(vm.uid, vm_file::record));
    const auto release = parse_vm_record(text).value().release;
    REQUIRE(release);
    return *release;
  }

  FakeQemuHost qemus;
  HostWithDevices devices{qemus.host};
  std::unique_ptr<Agent> agent;
};

void refuses(Bench& bench) {
  const auto second = bench.create("second");
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::conflict);
  CHECK(second.error().message ==
        "insufficient free gpus: requested 1 of any kind, 0 available in complete iommu groups");
}

TEST_CASE("a VM has its card alone, through a restart of the agent, and gives it back reset") {
  Bench bench;
  const auto vm = bench.made("one");
  CHECK(bench.record(vm).devices.size() == 4);
  CHECK_FALSE(bench.record(vm).release);
  CHECK(bench.agent->devices_in_use() == std::set<std::string>{"GPU-a"});
  refuses(bench);
  bench.start();
  refuses(bench);
  REQUIRE(bench.agent->destroy_vm("one"));
  const DeviceRelease release = bench.receipt(vm);
  CHECK(release.grade == ReleaseGrade::reset);
  CHECK(release.at.ends_with("Z"));
  REQUIRE(release.devices.size() == 4);
  CHECK(release.devices[0].reset == "flr");
  CHECK(bench.agent->devices_in_use().empty());
  CHECK(bench.create("two"));
}

TEST_CASE("a VM whose memory may not be locked is refused before anything starts") {
  Bench bench;
  std::uint64_t asked = 0;
  bench.qemus.allow_locking = [&](std::uint64_t bytes) {
    asked = bytes;
    return Result<void>(Error{ErrorCode::internal, "this user may lock 8 MiB"});
  };
  bench.start();
  const auto vm = bench.create("one");
  REQUIRE_FALSE(vm);
  CHECK(vm.error().message == "this user may lock 8 MiB");
  CHECK(asked == std::uint64_t{2} << 30U);
  CHECK(bench.devices.box.text(cat("/sys/bus/pci/devices/", card, "/reset")).empty());
  bench.qemus.allow_locking = [](std::uint64_t) { return Result<void>(); };
  bench.start();
  CHECK(bench.create("one"));
}

TEST_CASE("a card is free once its QEMU has died, before the VM is removed") {
  Bench bench;
  const auto vm = bench.made("one");
  SECTION("while the agent looks on") {
    ::kill(bench.record(vm).process.pid, SIGKILL);
    CHECK(eventually([&] { return bench.record(vm).release.has_value(); }));
  }
  SECTION("while there is no agent") {
    bench.agent.reset();
    ::kill(bench.record(vm).process.pid, SIGKILL);
    bench.start();
  }
  CHECK(bench.record(vm).state == VmState::ended);
  REQUIRE(bench.record(vm).release);
  CHECK(bench.record(vm).release->grade == ReleaseGrade::reset);
  CHECK(bench.create("two"));
  refuses(bench);
  // The first one's end takes nothing from the second.
  const std::size_t writes = bench.devices.box.writes.size();
  REQUIRE(bench.agent->destroy_vm("one"));
  CHECK(bench.devices.box.writes.size() == writes);
  refuses(bench);
}

TEST_CASE("a card that does not answer after a VM is given to nobody") {
  Bench bench;
  const auto vm = bench.made("one");
  bench.devices.box.add_file(cat("/sys/bus/pci/devices/", card, "/config"),
                             std::string(64, '\xff'));
  REQUIRE(bench.agent->destroy_vm("one"));
  CHECK(bench.receipt(vm).grade == ReleaseGrade::quarantined);
  CHECK(read_text(bench.qemus.config.devices.quarantine()).find(card) != std::string::npos);
  refuses(bench);
  bench.start();
  refuses(bench);
}

TEST_CASE("a card comes back from a VM that was not finished") {
  Bench bench;
  bench.qemus.plan(R"("say": "qemu: no good", "exit": 1)");
  REQUIRE_FALSE(bench.create("one"));
  CHECK(bench.devices.box.text(cat("/sys/bus/pci/devices/", card, "/reset")) == "1");
  bench.qemus.plan("");
  CHECK(bench.create("two"));
}

TEST_CASE("a VM whose card cannot be set aside keeps it") {
  Bench bench;
  const auto vm = bench.made("one");
  bench.devices.box.add_file(cat("/sys/bus/pci/devices/", card, "/config"),
                             std::string(64, '\xff'));
  // Nobody can write there.
  write_text(bench.qemus.config.devices.quarantine(), "not a line of it\n");
  const auto destroyed = bench.agent->destroy_vm("one");
  REQUIRE_FALSE(destroyed);
  CHECK(destroyed.error().message.find("take back the devices of vm one") != std::string::npos);
  CHECK(bench.agent->get_vm("one"));
  fs::remove(bench.qemus.config.devices.quarantine());
  REQUIRE(bench.agent->destroy_vm("one"));
  CHECK(bench.receipt(vm).grade == ReleaseGrade::quarantined);
}

}  // namespace
}  // namespace fuse
