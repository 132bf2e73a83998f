#include "hostmode/agent.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <future>
#include <thread>

#include "base/ids.h"
#include "base/text.h"
#include "hostmode/job_book.h"
#include "tests/catch.h"
#include "tests/hostmode/agent_fixture.h"
#include "tests/hostmode/leak_check.h"

namespace fuse {
namespace {

using Leaks = std::vector<std::string>;

// Leaves a VM's processes a moment to be gone.
Leaks leaks_that_stay(const LeakCheck& check) {
  (void)eventually([&] { return check.leaks().empty(); });
  return check.leaks();
}

JobSpec job_of(const std::string& script) {
  JobSpec job;
  job.script = script;
  return job;
}

// Whether one that begins so is among what is found, beside the descriptors of the
// planting itself.
bool finds(const LeakCheck& check, const std::string& leak) {
  return eventually([&] {
    return std::ranges::any_of(check.leaks(),
                               [&](const std::string& found) { return found.starts_with(leak); });
  });
}

// A script that goes on until the file it is given is gone.
std::string while_there(const fs::path& file) {
  write_text(file, "");
  return cat("while [ -e ", file.native(), " ]; do sleep 0.02; done");
}

TEST_CASE("the leak checker finds a planted leak of each kind") {
  FakeQemuHost fake;
  const LeakCheck check(fake.root());
  REQUIRE(check.leaks().empty());

  SECTION("a process that works in the folder") {
    const auto planted = fake.host.spawn({.argv = {"sleep", "600"}, .directory = fake.root()});
    REQUIRE(planted);
    CHECK(finds(check, cat("process ", (*planted)->pid())));
  }
  SECTION("a process that names the folder") {
    const auto planted = fake.host.spawn(
        {.argv = {"tail", "-f", "-s", "600", (fake.root() / "plan").native()}, .directory = "/"});
    REQUIRE(planted);
    CHECK(finds(check, cat("process ", (*planted)->pid())));
  }
  SECTION("a zombie") {
    const auto planted = fake.host.spawn({.argv = {"true"}, .directory = "/"});
    REQUIRE(planted);
    CHECK(finds(check, cat("zombie ", (*planted)->pid())));
  }
  SECTION("a file") {
    write_text(fake.paths().vms() / "left", "");
    CHECK(check.leaks() == Leaks{cat("file ", (fake.paths().vms() / "left").native())});
  }
  SECTION("a descriptor") {
    const Fd planted(::dup(0));
    REQUIRE(planted.valid());
    CHECK(check.leaks().size() == 1);
  }
  SECTION("a socket") {
    const Fd planted(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(planted.valid());
    CHECK(finds(check, "descriptor socket:["));
    CHECK(check.leaks().size() == 1);
  }
}

TEST_CASE("a VM is created, used and destroyed, and only its receipt stays") {
  FakeQemuHost fake;
  const LeakCheck check(fake.root());
  const std::string uid = new_ulid(WallTime{});
  const auto made =
      fake.agent().create_vm({.name = "Fuse_Train", .uid = uid, .image = "disk", .cluster = "c1"});
  REQUIRE_FALSE(made);  // the image's disk is missing: nothing may stay of the attempt
  CHECK(made.error().message.find("base.qcow2") != std::string::npos);
  CHECK(fs::is_empty(fake.paths().vms()));

  REQUIRE(fake.host
              .spawn({.argv = {"qemu-img", "create", "-q", "-f", "qcow2",
                               fake.root() / "base.qcow2", "1M"}})
              .value()
              ->wait(std::chrono::seconds(60)));
  const auto vm =
      fake.agent().create_vm({.name = "Fuse_Train", .uid = uid, .image = "disk", .cluster = "c1"});
  if (!vm) FAIL(vm.error().message);
  CHECK(vm->vm_id == "fuse-train");
  CHECK(vm->uid == uid);
  CHECK(vm->cluster == "c1");
  CHECK(vm->alive);
  CHECK(fake.agent().get_vm(uid).value().vm_id == "fuse-train");
  CHECK(fake.agent().get_vm("Fuse_Train").value().uid == uid);
  CHECK(fake.agent().list_vms("fuse-").value().size() == 1);
  CHECK(fake.agent().list_vms("other").value().empty());
  const auto record = read_vm_record(fake.host, fake.paths(), uid);
  REQUIRE(record);
  CHECK(record->state == VmState::running);
  CHECK(fs::exists(fake.paths().vm(uid, "disk.qcow2")));
  CHECK(fake.agent().images_in_use().contains(fake.root() / "base.qcow2"));

  const auto ran = fake.shell("echo out; echo err >&2; exit 5");
  REQUIRE(ran);
  CHECK(ran->exit_code == 5);
  CHECK(ran->out == "out\n");
  CHECK(ran->err == "err\n");
  REQUIRE(fake.agent().upload("fuse-train", {.path = "/data/in", .bytes = "content"}));
  CHECK(read_text(fake.root() / "guests" / ulid_to_uuid(uid) / "data/in") == "content");

  REQUIRE(fake.agent().destroy_vm("fuse-train"));
  CHECK(fake.agent().destroy_vm("fuse-train").error().message == "vm not found");
  CHECK(fake.agent().get_vm("fuse-train").error().code == ErrorCode::not_found);
  CHECK(fs::exists(fake.paths().receipt(uid, "record.json")));
  fake.drop_agent();
  CHECK(leaks_that_stay(check) == Leaks{});
}

TEST_CASE("what cannot be created is refused in words, before anything is made") {
  FakeQemuHost fake;
  fake.config.ovmf_code = fake.root() / "OVMF_CODE.fd";
  const auto refusal = [&](const CreateVmRequest& request) {
    const auto made = fake.agent().create_vm(request);
    REQUIRE_FALSE(made);
    CHECK(fs::is_empty(fake.paths().vms()));
    return made.error();
  };
  CHECK(refusal({.name = "a", .image = "no-such"}).code == ErrorCode::not_found);
  CHECK(refusal({.name = "a", .image = "foreign"}).message ==
        cat("image 'foreign' boots by firmware: ", fake.config.ovmf_code.native(),
            " is missing: VMs need both the firmware's code and its variables (Debian: ovmf)"));
  CHECK(refusal({.name = "a", .uid = "../x"}).code == ErrorCode::invalid_argument);
  CHECK(refusal({.name = "a", .cpus = -1}).message == "cpus must not be negative");
  const Error gpus = refusal({.name = "a", .gpus = 2, .gpu_kind = "a100"});
  CHECK(gpus.code == ErrorCode::conflict);
  CHECK(gpus.message ==
        "insufficient free gpus: requested 2 of kind 'a100', 0 available in complete iommu groups");
  CHECK(refusal({.name = "a", .gpus = 1, .gpu_profile = "1g.10gb"}).message ==
        "insufficient free mig instances: requested 1 x 1g.10gb of any kind, 0 free");
}

TEST_CASE("what boots by firmware has variables and a seed of its own, and its silence a hint") {
  FakeQemuHost fake;
  fake.config.ovmf_code = fake.root() / "OVMF_CODE.fd";
  fake.config.guest_program = fake.root() / "program";
  fake.config.boot_budget = std::chrono::milliseconds(1);
  write_text(fake.config.ovmf_code, "code");
  write_text(fake.root() / "OVMF_VARS.fd", "variables");
  write_text(fake.config.guest_program, "the agent");
  const LeakCheck check(fake.root());
  const auto made = fake.agent().create_vm({.name = "fuse-cloud", .image = "foreign"});
  REQUIRE(made);
  const fs::path dir = fake.paths().vm(made->uid);
  CHECK(read_text(dir / vm_file::firmware_vars) == "variables");
  CHECK(read_text(dir / vm_file::seed).find("the agent") != std::string::npos);
  CHECK(read_text(dir / vm_file::seed).find(made->uid) != std::string::npos);
  REQUIRE(fake.agent().destroy_vm("fuse-cloud"));
  CHECK_FALSE(fs::exists(dir));

  fake.plan_silent_guest(R"("console": "UEFI Interactive Shell v2.2\r\nShell>\r\n")");
  fake.drop_agent();
  const auto nothing = fake.agent().create_vm({.name = "fuse-cloud", .image = "foreign"});
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().message ==
        "start vm fuse-cloud: the guest did not say hello: its firmware, UEFI, has found nothing "
        "on the disk that it could start; its console ends with:\nUEFI Interactive Shell "
        "v2.2\nShell>");

  fake.plan_silent_guest(R"("console": "GNU GRUB\r\n")");
  fake.drop_agent();
  fake.config.firmware_boot_budget = std::chrono::seconds(2);
  const auto silent = fake.agent().create_vm({.name = "fuse-cloud", .image = "foreign"});
  REQUIRE_FALSE(silent);
  CHECK(silent.error().message.find("did not say hello within 2.0 s; image 'foreign'") !=
        std::string::npos);
  CHECK(silent.error().message.find("/run/cloud-init/ds-identify.log") != std::string::npos);
  CHECK(silent.error().message.ends_with("its console ends with:\nGNU GRUB"));
  fake.drop_agent();
  CHECK(leaks_that_stay(check) == Leaks{});
}

TEST_CASE("a QEMU that ends at once is quoted, and nothing of it stays") {
  FakeQemuHost fake;
  fake.plan(
      R"("say": "qemu: cannot set up guest memory 'pc.ram': Cannot allocate memory", "exit": 1)");
  const LeakCheck check(fake.root());

  const auto made = fake.agent().create_vm({.name = "fuse-train"});

  REQUIRE_FALSE(made);
  CHECK(made.error().message ==
        "start vm fuse-train: QEMU exited with 1: qemu: cannot set up guest memory 'pc.ram': "
        "Cannot allocate memory (the host has not that much memory free)");
  CHECK(fake.agent().get_vm("fuse-train").error().code == ErrorCode::not_found);
  fake.drop_agent();
  CHECK(leaks_that_stay(check) == Leaks{});
}

TEST_CASE("a guest that never says hello is given up with its console's last lines") {
  FakeQemuHost fake;
  fake.plan_silent_guest(R"("console": "booting\r\nfuse: \u001b[31mno root\u001b[0m found\r\n")");
  const LeakCheck check(fake.root());
  fake.config.boot_budget = std::chrono::seconds(2);

  const auto made = fake.agent().create_vm({.name = "fuse-train"});

  REQUIRE_FALSE(made);
  CHECK(made.error().message ==
        "start vm fuse-train: the guest did not say hello within 2.0 s; its console ends with:\n"
        "booting\nfuse: no root found");
  fake.drop_agent();
  CHECK(leaks_that_stay(check) == Leaks{});
}

TEST_CASE("a name is given once, and a retry under the same key is the same VM") {
  FakeQemuHost fake;
  Agent& agent = fake.agent();
  std::vector<std::future<Result<VmInfo>>> attempts;
  for (int i = 0; i < 6; ++i) {
    // Three retries of one create, three others that want the name.
    CreateVmRequest request{.name = "fuse-train"};
    request.idempotency_key = i % 2 == 0 ? "op-1" : cat("op-", 10 + i);
    attempts.push_back(
        std::async(std::launch::async, [&agent, request] { return agent.create_vm(request); }));
  }
  std::set<std::string> uids;
  std::set<std::string> errors;
  for (auto& attempt : attempts) {
    const auto made = attempt.get();
    if (made) uids.insert(made->uid);
    if (!made) errors.insert(made.error().message);
  }
  CHECK(uids.size() == 1);
  CHECK(errors == std::set<std::string>{"vm fuse-train already exists"});
  CHECK(agent.list_vms("").value().size() == 1);
  REQUIRE(agent.destroy_vm("fuse-train"));
}

TEST_CASE("VMs are created side by side") {
  FakeQemuHost fake;
  Agent& agent = fake.agent();
  // Neither comes up before the other has started: a lock between them would hang.
  fake.plan_silent_guest();
  auto first = std::async(std::launch::async, [&] { return agent.create_vm({.name = "one"}); });
  auto second = std::async(std::launch::async, [&] { return agent.create_vm({.name = "two"}); });
  CHECK(eventually([&] {
    int started = 0;
    for (const auto& dir : fs::directory_iterator(fake.paths().vms())) {
      if (fs::exists(dir.path() / "ch.sock")) ++started;
    }
    return started == 2;
  }));
  // Destroying one that is being created cancels it.
  CHECK(agent.destroy_vm("one"));
  CHECK(agent.destroy_vm("two"));
  CHECK(first.get().error().message ==
        "start vm one: the vm was destroyed while it was being created");
  CHECK_FALSE(second.get());
  CHECK(fs::is_empty(fake.paths().vms()));
}

TEST_CASE("a job's every byte and its code arrive, live and after its VM is gone") {
  FakeQemuHost fake;
  const VmInfo vm = fake.create();
  const std::string noise = base64_encode(random_bytes(300000));
  const int code = 1 + static_cast<unsigned char>(random_bytes(1)[0]) % 200;
  write_text(fake.root() / "noise", noise);
  REQUIRE(fake.agent().upload(vm.vm_id, {.path = "/in", .bytes = "x"}));
  CHECK(fake.agent().job(vm.vm_id).error().code == ErrorCode::not_found);

  const fs::path go = fake.root() / "go";
  REQUIRE(fake.agent().start_job(vm.vm_id,
                                 job_of(cat("echo begun; ", while_there(go), "; cat ",
                                            (fake.root() / "noise").native(), "; exit ", code))));
  CHECK(fake.agent().start_job(vm.vm_id, job_of("true")).error().code == ErrorCode::conflict);
  std::string live;
  auto follower = std::async(std::launch::async, [&] {
    return fake.agent().logs(vm.vm_id, {.follow = true},
                             [&](std::string_view bytes) {
                               live += bytes;
                               // The first line is here while the job still waits.
                               if (live == "begun\n") fs::remove(go);
                               return true;
                             },
                             {});
  });
  const auto range = follower.get();

  REQUIRE(range);
  CHECK(live == cat("begun\n", noise));
  CHECK(range->end == live.size());
  const auto status = fake.agent().job(vm.vm_id);
  REQUIRE(status);
  CHECK(status->state == JobState::exited);
  CHECK(status->exit_code == code);
  CHECK(status->log_bytes == live.size());
  CHECK(eventually([&] { return fake.ends == 1; }));

  REQUIRE(fake.agent().destroy_vm(vm.vm_id));
  for (const std::string& id : {vm.vm_id, vm.uid}) {
    CHECK(fake.agent().job(id).value().exit_code == code);
    CHECK(whole_log(fake.agent(), id) == live);
  }
  fake.drop_agent();
  CHECK(whole_log(fake.agent(), vm.uid) == live);
}

TEST_CASE("a VM that is destroyed while its job runs gives up its log first") {
  FakeQemuHost fake;
  const LeakCheck check(fake.root());
  const VmInfo vm = fake.create();
  REQUIRE(
      fake.agent().start_job(vm.vm_id, job_of(cat("trap 'echo last words; exit 9' TERM; echo up; ",
                                                  while_there(fake.root() / "go")))));
  CHECK(eventually([&] { return read_text(fake.paths().vm(vm.uid, "job.log")) == "up\n"; }));
  auto follower = std::async(std::launch::async, [&] { return whole_log(fake.agent(), vm.uid); });

  REQUIRE(fake.agent().destroy_vm(vm.vm_id));

  const std::string followed = follower.get();
  CHECK(followed.starts_with("up\n"));
  CHECK(followed.ends_with("last words\n"));  // the shell may tell of its child before
  const auto job = fake.agent().job(vm.uid);
  REQUIRE(job);
  CHECK(job->state == JobState::exited);
  CHECK(job->reason == "stopped");
  fake.drop_agent();
  CHECK(leaks_that_stay(check) == Leaks{});
}

TEST_CASE("a VM that ends by itself is told of") {
  FakeQemuHost fake;
  const VmInfo vm = fake.create();
  const auto record = read_vm_record(fake.host, fake.paths(), vm.uid).value();
  REQUIRE(::kill(record.process.pid, SIGKILL) == 0);
  CHECK(eventually([&] { return fake.ends == 1; }));
  CHECK_FALSE(fake.agent().get_vm(vm.uid).value().alive);
  REQUIRE(fake.agent().destroy_vm(vm.vm_id));
}

TEST_CASE("VMs and jobs go on while there is no agent, and the next one takes them up") {
  FakeQemuHost fake;
  const LeakCheck check(fake.root());
  const VmInfo vm = fake.create();
  const fs::path go = fake.root() / "go";
  REQUIRE(fake.agent().start_job(
      vm.vm_id, job_of(cat("echo before; ", while_there(go), "; echo after; exit 6"))));
  CHECK(eventually([&] { return read_text(fake.paths().vm(vm.uid, "job.log")) == "before\n"; }));
  const auto endpoints = fake.agent().start_agent(vm.vm_id, {.expose = {{8080, "http"}}});
  REQUIRE(endpoints);

  fake.drop_agent();
  fs::remove(go);  // the job ends while nobody looks

  REQUIRE(fake.agent().list_vms("").value().size() == 1);
  CHECK(fake.agent().get_vm(vm.uid).value().alive);
  CHECK(whole_log(fake.agent(), vm.vm_id) == "before\nafter\n");
  CHECK(fake.agent().job(vm.vm_id).value().exit_code == 6);
  const auto again = fake.agent().start_agent(vm.vm_id, {.expose = {{8080, "http"}}});
  REQUIRE(again);
  CHECK((*again)[0].host_port == (*endpoints)[0].host_port);
  CHECK((*again)[0].url == cat("127.0.0.1:", (*endpoints)[0].host_port));
  REQUIRE(fake.agent().destroy_vm(vm.vm_id));
  fake.drop_agent();
  // An adopted QEMU is not this process' child any more in life; here it still
  // is, and stays a zombie until its parent looks.
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  CHECK(leaks_that_stay(check) == Leaks{});
}

TEST_CASE("a QEMU that dies is noticed at once, and its job is lost") {
  FakeQemuHost fake;
  const VmInfo vm = fake.create();
  REQUIRE(
      fake.agent().start_job(vm.vm_id, job_of(cat("echo up; ", while_there(fake.root() / "go")))));
  CHECK(eventually([&] { return read_text(fake.paths().vm(vm.uid, "job.log")) == "up\n"; }));
  auto follower = std::async(std::launch::async, [&] { return whole_log(fake.agent(), vm.uid); });

  fake.kill_all();

  CHECK(follower.get() == "up\n");  // ends by itself, without anyone asking about the VM
  CHECK(eventually([&] { return !fake.agent().get_vm(vm.uid).value().alive; }));
  CHECK(fake.agent().get_vm(vm.uid).value().ended == "QEMU was killed by signal 9");
  CHECK(fake.agent().job(vm.uid).value().state == JobState::lost);
  CHECK(fake.agent().job(vm.uid).value().reason == "lost");
  CHECK(fake.shell("true").error().message ==
        "vm fuse-train has ended: QEMU was killed by signal 9");
  CHECK(fake.agent().alive() == 0);
  // Its name is in use until it is destroyed.
  CHECK(fake.agent().create_vm({.name = "fuse-train"}).error().code == ErrorCode::conflict);
  REQUIRE(fake.agent().destroy_vm(vm.vm_id));
  CHECK(fake.agent().job(vm.uid).value().state == JobState::lost);
  CHECK(fake.create().uid != vm.uid);
  REQUIRE(fake.agent().destroy_vm(vm.vm_id));
}

TEST_CASE("a QEMU that hears nothing is killed") {
  FakeQemuHost fake;
  const LeakCheck check(fake.root());
  fake.plan(R"("stubborn": true)");
  fake.config.stop.power_off = std::chrono::milliseconds(300);
  const VmInfo vm = fake.create();
  REQUIRE(fake.agent().destroy_vm(vm.vm_id));
  fake.drop_agent();
  CHECK(leaks_that_stay(check) == Leaks{});
}

TEST_CASE("a guest that hangs does not hold up the end of its VM") {
  FakeQemuHost fake;
  const LeakCheck check(fake.root());
  fake.config.session.goodbye = std::chrono::milliseconds(300);
  fake.config.stop.power_off = std::chrono::milliseconds(300);
  const VmInfo vm = fake.create();
  REQUIRE(
      fake.agent().start_job(vm.vm_id, job_of(cat("echo up; ", while_there(fake.root() / "go")))));
  CHECK(eventually([&] { return read_text(fake.paths().vm(vm.uid, "job.log")) == "up\n"; }));
  const auto record = read_vm_record(fake.host, fake.paths(), vm.uid).value();
  const auto children = split(
      trim(read_text(cat("/proc/", record.process.pid, "/task/", record.process.pid, "/children"))),
      ' ');
  REQUIRE_FALSE(children.empty());
  for (const std::string& child : children) REQUIRE(::kill(std::stoi(child), SIGSTOP) == 0);

  REQUIRE(fake.agent().destroy_vm(vm.vm_id));

  CHECK(fake.agent().job(vm.uid).value().state == JobState::lost);
  CHECK(whole_log(fake.agent(), vm.uid) == "up\n");
  fs::remove(fake.root() / "go");
  fake.drop_agent();
  CHECK(leaks_that_stay(check) == Leaks{});
}

TEST_CASE("KVM is tried with a guest first, once, and nothing of the trial stays") {
  FakeQemuHost fake;
  const LeakCheck check(fake.root());
  fake.config.accel = AccelPolicy::automatic;
  fake.config.kvm_device = fake.root() / "kvm";
  fake.config.kvm_trial_budget = std::chrono::seconds(60);
  Accel expected = Accel::tcg;
  SECTION("where it cannot be opened") {}
  SECTION("where guests run under it") {
    write_text(fake.config.kvm_device, "");
    expected = Accel::kvm;
  }
  SECTION("where guests hang under it") {
    write_text(fake.config.kvm_device, "");
    fake.config.kvm_trial_budget = std::chrono::milliseconds(300);
    fake.plan_silent_guest();
    CHECK_FALSE(fake.agent().create_vm({.name = "fuse-train", .image = "no-such"}));
    // The trial is made by the first VM that could be started; its own boot is not
    // what this is about.
    auto made = std::async(std::launch::async, [agent = &fake.agent()] {
      return agent->create_vm({.name = "fuse-train"});
    });
    CHECK(eventually([&] { return fs::exists(fake.paths().accel()); }));
    REQUIRE(fake.agent().destroy_vm("fuse-train"));
    CHECK_FALSE(made.get());
    fake.plan("");
    fake.drop_agent();  // the next one knows
  }

  const VmInfo vm = fake.create();

  CHECK(read_vm_record(fake.host, fake.paths(), vm.uid).value().accel == expected);
  CHECK((!fs::exists(fake.paths().probes()) || fs::is_empty(fake.paths().probes())));
  REQUIRE(fake.agent().destroy_vm(vm.vm_id));
  fake.drop_agent();
  CHECK(leaks_that_stay(check) == Leaks{});
}

TEST_CASE("a host without QEMU says what to install") {
  FakeQemuHost fake;
  fake.config.path = fake.root();
  SECTION("no QEMU") {
    fake.config.qemu = "qemu-system-x86_64";
  }
  SECTION("no qemu-img") {}
  const auto made = fake.agent().create_vm({.name = "fuse-train"});
  REQUIRE_FALSE(made);
  // Not one that passes by itself, and so would be tried again.
  CHECK(made.error().code == ErrorCode::internal);
  CHECK(made.error().message ==
        (fake.config.qemu == "qemu-system-x86_64"
             ? "qemu-system-x86_64 is not on this host: install QEMU (Debian: qemu-system-x86)"
             : "qemu-img is not on this host: install QEMU (Debian: qemu-utils)"));
}

TEST_CASE("how a guest ended is read from its console, and not guessed where that is silent") {
  const TestDir vm;
  const auto told = [&](const std::string& console) {
    write_text(vm.path() / vm_file::serial_log, console);
    return describe_end(vm.path(), ExitStatus{});
  };
  CHECK(told("[ 9.1] reboot: Restarting system\r\n") == "the guest restarted itself");
  CHECK(told("[ 9.1] reboot: Power down\r\n") == "the guest powered off");
  CHECK(told("GNU GRUB\r\n") == "the guest powered off or restarted itself");
}

}  // namespace
}  // namespace fuse
