#include <sys/wait.h>

#include <csignal>

#include "base/ids.h"
#include "base/posix_process.h"
#include "base/text.h"
#include "hostmode/agent.h"
#include "hostmode/job_book.h"
#include "tests/catch.h"
#include "tests/hostmode/agent_fixture.h"
#include "tests/hostmode/leak_check.h"
#include "tests/hostmode/sample_record.h"

namespace fuse {
namespace {

using Leaks = std::vector<std::string>;

// QEMUs of a dropped agent are still children of this process; in life init takes
// them.
void reap_children() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

Leaks leaks_that_stay(const LeakCheck& check) {
  (void)eventually([&] {
    reap_children();
    return check.leaks().empty();
  });
  return check.leaks();
}

VmRecord record_of(FakeQemuHost& fake, const std::string& uid) {
  const auto record = read_vm_record(fake.host, fake.paths(), uid);
  if (!record) FAIL(record.error().message);
  return *record;
}

void rewrite(FakeQemuHost& fake, const VmRecord& record) {
  const auto written = write_vm_record(fake.host, fake.paths(), record);
  if (!written) FAIL(written.error().message);
}

TEST_CASE("a second agent on a state directory is refused and names the first") {
  FakeQemuHost fake;
  (void)fake.agent();
  PosixHost host;

  const auto second = fake.start_agent(host);

  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::conflict);
  CHECK(second.error().message == cat("the state directory ", fake.paths().root().native(),
                                      " is in use by process ", ::getpid()));
  fake.drop_agent();
  CHECK(fake.start_agent(host));
}

TEST_CASE("the state of a newer version is refused, naming both") {
  FakeQemuHost fake;
  write_text(fake.paths().version(), "2\n");
  const auto started = fake.start_agent(fake.host);
  REQUIRE_FALSE(started);
  CHECK(started.error().code == ErrorCode::unimplemented);
  CHECK(started.error().message.find("has layout 2, this program knows 1") != std::string::npos);
}

TEST_CASE("a VM whose creation was cut off is undone, wherever it was") {
  FakeQemuHost fake;
  const LeakCheck check(fake.root());
  const VmInfo vm = fake.create();
  VmRecord record = record_of(fake, vm.uid);
  fake.drop_agent();
  record.state = VmState::creating;

  SECTION("with its QEMU running and written down") {
    rewrite(fake, record);
  }
  SECTION("with its QEMU running, which nobody had time to write down") {
    record.process = {};
    rewrite(fake, record);
  }
  SECTION("with its QEMU dead") {
    rewrite(fake, record);
    fake.kill_all();
    reap_children();
  }
  SECTION("before its QEMU was started") {
    fake.kill_all();
    reap_children();
    record.process = {};
    record.argv.clear();
    rewrite(fake, record);
  }

  CHECK(fake.agent().list_vms("").value().empty());
  CHECK(fs::is_empty(fake.paths().vms()));
  fake.drop_agent();
  CHECK(leaks_that_stay(check) == Leaks{});
}

TEST_CASE("a folder whose record was never written is removed, any other is kept") {
  FakeQemuHost fake;
  const std::string begun = "01ARZ3NDEKTSV4RRFFQ69G5FA1";
  const std::string strange = "01ARZ3NDEKTSV4RRFFQ69G5FA2";
  write_text(fake.paths().vm(begun, "record.json.new-0123"), "{");
  write_text(fake.paths().vm(strange, "disk.qcow2"), "precious");
  fs::create_directories(fake.paths().removed_vm("01ARZ3NDEKTSV4RRFFQ69G5FA3"));

  const auto set_aside = fake.agent().quarantined();

  CHECK_FALSE(fs::exists(fake.paths().vm(begun)));
  CHECK_FALSE(fs::exists(fake.paths().removed_vm("01ARZ3NDEKTSV4RRFFQ69G5FA3")));
  CHECK(fs::exists(fake.paths().vm(strange, "disk.qcow2")));
  REQUIRE(set_aside.size() == 1);
  CHECK(set_aside[0].uid == strange);
  CHECK(set_aside[0].reason == "it has no record, but holds disk.qcow2");
  CHECK(read_text(fake.paths().quarantine()).find(strange) != std::string::npos);
}

TEST_CASE("a damaged or newer record is set aside with its QEMU alive") {
  FakeQemuHost fake;
  const VmInfo vm = fake.create();
  const VmRecord record = record_of(fake, vm.uid);
  fake.drop_agent();
  std::string text = to_text(record);
  std::string reason;
  SECTION("cut short") {
    text.resize(text.size() / 2);
    reason = "the record is damaged: it is not JSON";
  }
  SECTION("newer") {
    text.replace(text.find("\"schema\": 1"), 11, "\"schema\": 9");
    reason = "the record has schema 9, this program knows 1: it was written by a newer version";
  }
  write_text(fake.paths().vm(vm.uid, "record.json"), text);

  const auto set_aside = fake.agent().quarantined();

  REQUIRE(set_aside.size() == 1);
  CHECK(set_aside[0].reason == reason);
  CHECK(process_start_time(record.process.pid).value() == record.process.start_time);
  CHECK(read_text(fake.paths().vm(vm.uid, "record.json")) == text);
  CHECK(fake.agent().create_vm({.name = "x", .uid = vm.uid}).error().code == ErrorCode::conflict);

  // Put right, it is taken up again.
  fake.drop_agent();
  rewrite(fake, record);
  CHECK(fake.agent().quarantined().empty());
  CHECK(fake.agent().get_vm(vm.vm_id).value().alive);
  CHECK_FALSE(fs::exists(fake.paths().quarantine()));
  REQUIRE(fake.agent().destroy_vm(vm.vm_id));
}

TEST_CASE("a QEMU that died between two agents has ended, and its job is lost") {
  FakeQemuHost fake;
  const VmInfo vm = fake.create();
  JobSpec job;
  write_text(fake.root() / "go", "");
  job.script =
      cat("echo up; while [ -e ", (fake.root() / "go").native(), " ]; do sleep 0.02; done");
  REQUIRE(fake.agent().start_job(vm.vm_id, job));
  CHECK(eventually([&] { return read_text(fake.paths().vm(vm.uid, "job.log")) == "up\n"; }));
  fake.drop_agent();
  fake.kill_all();
  reap_children();

  CHECK_FALSE(fake.agent().get_vm(vm.vm_id).value().alive);
  CHECK(fake.agent().get_vm(vm.vm_id).value().ended == "QEMU is gone");
  CHECK(fake.agent().job(vm.vm_id).value().state == JobState::lost);
  CHECK(whole_log(fake.agent(), vm.vm_id) == "up\n");
  REQUIRE(fake.agent().destroy_vm(vm.vm_id));
  CHECK(whole_log(fake.agent(), vm.vm_id) == "up\n");
}

TEST_CASE("a job whose result was fetched is not lost with its QEMU") {
  FakeQemuHost fake;
  const VmInfo vm = fake.create();
  JobSpec job;
  job.script = "echo done; exit 4";
  REQUIRE(fake.agent().start_job(vm.vm_id, job));
  CHECK(whole_log(fake.agent(), vm.vm_id) == "done\n");
  fake.drop_agent();
  fake.kill_all();
  reap_children();
  CHECK(fake.agent().job(vm.vm_id).value().exit_code == 4);
}

TEST_CASE("a recycled pid is never touched") {
  FakeQemuHost fake;
  const VmInfo vm = fake.create();
  VmRecord record = record_of(fake, vm.uid);
  fake.drop_agent();
  fake.kill_all();
  reap_children();
  const auto innocent = fake.host.spawn({.argv = {"sleep", "600"}, .directory = "/"});
  REQUIRE(innocent);
  record.process.pid = (*innocent)->pid();
  SECTION("of another start time") {
    record.process.start_time = (*innocent)->start_time() - 1;
  }
  SECTION("of another boot") {
    record.process.start_time = (*innocent)->start_time();
    record.process.boot_id = "another";
  }
  rewrite(fake, record);

  CHECK_FALSE(fake.agent().get_vm(vm.vm_id).value().alive);
  REQUIRE(fake.agent().destroy_vm(vm.vm_id));

  CHECK_FALSE((*innocent)->wait(std::chrono::milliseconds(0)).value());
}

TEST_CASE("a process whose monitor is another's is set aside, not killed") {
  FakeQemuHost fake;
  fake.plan(R"("uuid": "01563e3a-b5d3-d676-4c61-efb99302bd5b")");
  const VmInfo vm = fake.create();
  const VmRecord record = record_of(fake, vm.uid);
  fake.drop_agent();

  const auto set_aside = fake.agent().quarantined();

  REQUIRE(set_aside.size() == 1);
  CHECK(set_aside[0].reason == cat("process ", record.process.pid,
                                   " runs, but its monitor is that of "
                                   "01563e3a-b5d3-d676-4c61-efb99302bd5b"));
  CHECK(process_start_time(record.process.pid).value() == record.process.start_time);
}

TEST_CASE("a destruction that was cut off is finished by the next agent") {
  FakeQemuHost fake;
  const LeakCheck check(fake.root());
  const VmInfo vm = fake.create();
  JobSpec job;
  job.script = "echo done; exit 4";
  REQUIRE(fake.agent().start_job(vm.vm_id, job));
  CHECK(whole_log(fake.agent(), vm.vm_id) == "done\n");
  VmRecord record = record_of(fake, vm.uid);
  fake.drop_agent();
  record.destroying = true;
  rewrite(fake, record);
  SECTION("while its QEMU ran") {}
  SECTION("after its QEMU ended") {
    fake.kill_all();
    reap_children();
  }
  SECTION("after a part of the receipt was there") {
    fake.kill_all();
    reap_children();
    fs::create_directories(fake.paths().receipt(vm.uid));
    fs::rename(fake.paths().vm(vm.uid, "job.log"), fake.paths().receipt(vm.uid, "job.log"));
  }

  CHECK(fake.agent().list_vms("").value().empty());
  CHECK(fs::is_empty(fake.paths().vms()));
  CHECK(fake.agent().job(vm.uid).value().exit_code == 4);
  CHECK(whole_log(fake.agent(), vm.uid) == "done\n");
  fake.drop_agent();
  CHECK(leaks_that_stay(check) == Leaks{});
}

TEST_CASE("a guest that a trial of KVM left is ended") {
  FakeQemuHost fake;
  const LeakCheck check(fake.root());
  const std::string uid = "01ARZ3NDEKTSV4RRFFQ69G5FA1";
  const fs::path dir = fake.paths().probes() / uid;
  fs::create_directories(dir);
  auto qemu = launch_qemu(fake.host, dir, {fake.root() / "qemu", "-uuid", ulid_to_uuid(uid)});
  REQUIRE(qemu);
  qemu.value().reset();

  (void)fake.agent();
  fake.drop_agent();

  CHECK(leaks_that_stay(check) == Leaks{});
}

// A host that fails at the n-th change it is asked for.
class FailingHost final : public Host {
 public:
  explicit FailingHost(Host& real) : real_(real) {}
  int fail_at = 0;
  int changes = 0;

  Result<std::string> read_file(const fs::path& file) override { return real_.read_file(file); }
  Result<void> write_file(const fs::path& file, std::string_view text) override {
    if (fails()) return no_space();
    return real_.write_file(file, text);
  }
  Result<void> replace_file(const fs::path& file, std::string_view text, mode_t mode) override {
    if (fails()) return no_space();
    return real_.replace_file(file, text, mode);
  }
  Result<fs::path> read_link(const fs::path& link) override { return real_.read_link(link); }
  Result<std::vector<std::string>> list_dir(const fs::path& dir) override {
    return real_.list_dir(dir);
  }
  Result<void> make_dirs(const fs::path& dir, mode_t mode) override {
    if (fails()) return no_space();
    return real_.make_dirs(dir, mode);
  }
  Result<void> remove_all(const fs::path& path) override { return real_.remove_all(path); }
  Result<std::unique_ptr<Process>> spawn(const SpawnSpec& spec) override {
    if (fails()) return no_space();
    return real_.spawn(spec);
  }

 private:
  bool fails() { return ++changes == fail_at; }
  static Error no_space() { return {ErrorCode::internal, "No space left on device"}; }
  Host& real_;
};

TEST_CASE("a create that fails at any of its steps leaves nothing, and the name is free") {
  FakeQemuHost fake;
  const LeakCheck check(fake.root());
  FailingHost failing(fake.host);
  auto agent = fake.start_agent(failing);
  REQUIRE(agent);
  int failures = 0;
  for (int step = 1;; ++step) {
    failing.changes = 0;
    failing.fail_at = step;
    const auto made = (*agent)->create_vm({.name = "fuse-train"});
    failing.fail_at = 0;
    if (made) break;
    INFO("at step " << step << ": " << made.error().message);
    CHECK(made.error().message.find("No space left on device") != std::string::npos);
    CHECK(fs::is_empty(fake.paths().vms()));
    CHECK((*agent)->list_vms("").value().empty());
    ++failures;
    REQUIRE(step < 50);
  }
  CHECK(failures >= 4);  // folder, record, command line, start, pid, running
  REQUIRE((*agent)->destroy_vm("fuse-train"));
  agent.value().reset();
  CHECK(leaks_that_stay(check) == Leaks{});
}

TEST_CASE("a destroy that fails at any of its steps can be tried again") {
  FakeQemuHost fake;
  FailingHost failing(fake.host);
  auto agent = fake.start_agent(failing);
  REQUIRE(agent);
  for (int step = 1;; ++step) {
    const auto made = (*agent)->create_vm({.name = "fuse-train"});
    if (!made) FAIL(made.error().message);
    failing.changes = 0;
    failing.fail_at = step;
    const auto destroyed = (*agent)->destroy_vm("fuse-train");
    const bool reached = failing.changes >= step;
    failing.fail_at = 0;
    if (!destroyed) CHECK((*agent)->destroy_vm("fuse-train"));
    CHECK(fs::is_empty(fake.paths().vms()));
    CHECK(fs::exists(fake.paths().receipt(made->uid, "record.json")));
    if (!reached) break;
    REQUIRE(step < 50);
  }
}

}  // namespace
}  // namespace fuse
