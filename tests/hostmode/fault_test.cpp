// What becomes of a VM when its folder or its record is no longer what the agent
// left.

#include <sys/wait.h>

#include "base/posix_process.h"
#include "base/text.h"
#include "hostmode/agent.h"
#include "hostmode/job_book.h"
#include "tests/catch.h"
#include "tests/hostmode/agent_fixture.h"
#include "tests/hostmode/leak_check.h"

namespace fuse {
namespace {

using Leaks = std::vector<std::string>;

void reap_children() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

// What keeps the job of vm_with_job running: no VM's end ends the processes of a
// fake guest.
fs::path go_on(FakeQemuHost& fake) {
  return fake.root() / "go";
}

// A VM with a job that runs on and has said "up".
VmInfo vm_with_job(FakeQemuHost& fake) {
  fake.config.look_interval = std::chrono::milliseconds(20);
  const VmInfo vm = fake.create();
  write_text(go_on(fake), "");
  JobSpec job;
  job.script = cat("echo up; while [ -e ", go_on(fake).native(), " ]; do sleep 0.02; done");
  REQUIRE(fake.agent().start_job(vm.vm_id, job));
  CHECK(eventually([&] { return read_text(fake.paths().vm(vm.uid, "job.log")) == "up\n"; }));
  return vm;
}

Leaks leaks_that_stay(FakeQemuHost& fake, const LeakCheck& check) {
  fake.drop_agent();
  fs::remove(go_on(fake));
  (void)eventually([&] {
    reap_children();
    return check.leaks().empty();
  });
  return check.leaks();
}

pid_t qemu_of(FakeQemuHost& fake, const VmInfo& vm) {
  const auto record = read_vm_record(fake.host, fake.paths(), vm.uid);
  if (!record) FAIL(record.error().message);
  return record->process.pid;
}

bool runs(pid_t pid) {
  reap_children();
  return process_start_time(pid).has_value();
}

TEST_CASE("a VM whose folder goes while it runs is ended, and its job lost for that reason") {
  FakeQemuHost fake;
  const LeakCheck check(fake.root());
  const VmInfo vm = vm_with_job(fake);
  const pid_t qemu = qemu_of(fake, vm);
  const fs::path dir = fake.paths().vm(vm.uid);
  SECTION("removed") {
    fs::remove_all(dir);
  }
  SECTION("moved away") {
    fs::rename(dir, fake.root() / "elsewhere");
  }
  SECTION("replaced by another") {
    fs::remove_all(dir);
    fs::create_directory(dir);
  }

  CHECK(eventually([&] { return !fake.agent().get_vm(vm.uid).value().alive; }));

  const std::string reason = cat("its folder ", dir.native(), " was removed while it ran");
  CHECK(fake.agent().get_vm(vm.uid).value().ended == reason);
  CHECK(fake.agent().job(vm.uid).value().state == JobState::lost);
  CHECK_FALSE(runs(qemu));
  // Also after a restart.
  fake.drop_agent();
  CHECK(fake.agent().get_vm(vm.uid).value().ended == reason);
  CHECK(fake.agent().destroy_vm(vm.uid));
  CHECK(fake.agent().get_vm(vm.uid).error().code == ErrorCode::not_found);
  fs::remove_all(fake.root() / "elsewhere");
  CHECK(leaks_that_stay(fake, check) == Leaks{});
}

TEST_CASE("the log of a job whose folder was removed is kept") {
  FakeQemuHost fake;
  const VmInfo vm = vm_with_job(fake);
  fs::remove_all(fake.paths().vm(vm.uid));
  CHECK(whole_log(fake.agent(), vm.uid) == "up\n");
  REQUIRE(fake.agent().destroy_vm(vm.uid));
  CHECK(whole_log(fake.agent(), vm.uid) == "up\n");
  CHECK(fake.agent().job(vm.uid).value().state == JobState::lost);
}

TEST_CASE("a VM can be destroyed though its folder was just removed") {
  FakeQemuHost fake;
  const LeakCheck check(fake.root());
  const VmInfo vm = vm_with_job(fake);
  fs::remove_all(fake.paths().vm(vm.uid));
  CHECK(fake.agent().destroy_vm(vm.uid));
  CHECK(fake.agent().list_vms("").value().empty());
  CHECK(leaks_that_stay(fake, check) == Leaks{});
}

TEST_CASE("a VM whose folder was removed while no agent was there is ended by the next") {
  FakeQemuHost fake;
  const LeakCheck check(fake.root());
  const VmInfo vm = vm_with_job(fake);
  const pid_t qemu = qemu_of(fake, vm);
  fake.drop_agent();
  fs::remove_all(fake.paths().vm(vm.uid));
  REQUIRE(runs(qemu));

  CHECK(fake.agent().get_vm(vm.uid).error().code == ErrorCode::not_found);

  CHECK_FALSE(runs(qemu));
  CHECK(leaks_that_stay(fake, check) == Leaks{});
}

TEST_CASE("a VM that no record names is ended when its destruction is asked for") {
  FakeQemuHost fake;
  const LeakCheck check(fake.root());
  const VmInfo vm = vm_with_job(fake);
  const pid_t qemu = qemu_of(fake, vm);
  fake.drop_agent();
  fs::rename(fake.paths().vm(vm.uid), fake.root() / "elsewhere");

  CHECK(fake.agent().get_vm(vm.uid).error().code == ErrorCode::not_found);
  CHECK(runs(qemu));
  CHECK(fake.agent().destroy_vm(vm.uid));

  CHECK_FALSE(runs(qemu));
  CHECK(fake.agent().destroy_vm(vm.uid).error().code == ErrorCode::not_found);
  fs::remove_all(fake.root() / "elsewhere");
  CHECK(leaks_that_stay(fake, check) == Leaks{});
}

TEST_CASE("a VM with a damaged record has ended, and can be destroyed with its log kept") {
  FakeQemuHost fake;
  const LeakCheck check(fake.root());
  const VmInfo vm = vm_with_job(fake);
  fake.drop_agent();
  write_text(fake.paths().vm(vm.uid, "record.json"), "{\"schema\": 1, ");

  const auto found = fake.agent().get_vm(vm.uid);
  REQUIRE(found);
  CHECK_FALSE(found->alive);
  CHECK(found->ended == "it is set aside: the record is damaged: it is not JSON");
  CHECK(fake.agent().job(vm.uid).value().state == JobState::lost);
  CHECK(whole_log(fake.agent(), vm.uid) == "up\n");
  const auto used = fake.agent().exec(vm.uid, {.cmd = {"true"}});
  REQUIRE_FALSE(used);
  CHECK(used.error().message ==
        cat("vm ", vm.uid, " is set aside: the record is damaged: it is not JSON"));

  CHECK(fake.agent().destroy_vm(vm.uid));

  CHECK(fake.agent().quarantined().empty());
  CHECK(fs::is_empty(fake.paths().vms()));
  CHECK_FALSE(fs::exists(fake.paths().quarantine()));
  CHECK(whole_log(fake.agent(), vm.uid) == "up\n");
  CHECK(fake.agent().job(vm.uid).value().state == JobState::lost);
  CHECK(leaks_that_stay(fake, check) == Leaks{});
}

TEST_CASE("a VM of a newer version is neither said to have ended nor destroyed") {
  FakeQemuHost fake;
  const VmInfo vm = vm_with_job(fake);
  const pid_t qemu = qemu_of(fake, vm);
  fake.drop_agent();
  std::string text = read_text(fake.paths().vm(vm.uid, "record.json"));
  text.replace(text.find("\"schema\": 1"), 11, "\"schema\": 9");
  write_text(fake.paths().vm(vm.uid, "record.json"), text);

  const Error expected{ErrorCode::unavailable,
                       cat("vm ", vm.uid,
                           " is set aside: the record has schema 9, this program knows 1: it was "
                           "written by a newer version")};
  for (const Error& error : {fake.agent().get_vm(vm.uid).error(), fake.agent().job(vm.uid).error(),
                             fake.agent().destroy_vm(vm.uid).error()}) {
    CHECK(error.code == expected.code);
    CHECK(error.message == expected.message);
  }
  CHECK(runs(qemu));
  CHECK(fs::exists(fake.paths().vm(vm.uid, "record.json")));
}

}  // namespace
}  // namespace fuse
