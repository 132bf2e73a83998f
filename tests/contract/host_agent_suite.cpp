#include "tests/contract/host_agent_suite.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/ids.h"
#include "base/text.h"
#include "orchestrator/api/attach_payloads.h"
#include "tests/catch.h"

namespace fuse {

namespace {

namespace fs = std::filesystem;

template <class T>
T value(Result<T> result) {
  if (!result) FAIL(result.error().message);
  return *std::move(result);
}

void succeed(const Result<void>& result) {
  if (!result) FAIL(result.error().message);
}

template <class T>
Error refusal(const Result<T>& result) {
  if (result) FAIL("it was not refused");
  return result.error();
}

VmInfo make(HostWorld& world, const std::string& name = "fuse-train") {
  return value(world.host().vms.create_vm({.name = name}));
}

std::string script_until(const fs::path& file) {
  std::ofstream(file) << "";
  return cat("while [ -e ", file.native(), " ]; do sleep 0.02; done; ");
}

std::string whole_log(HostWorld& world, const std::string& id, const LogQuery& query) {
  std::string out;
  const auto range = value(world.host().jobs.logs(
      id, query, [&](std::string_view bytes) { return out += bytes, true; }, {}));
  CHECK(range.end - range.begin == out.size());
  return out;
}

JobStatus await_end(HostWorld& world, const std::string& id) {
  for (;;) {
    JobStatus status = value(world.host().jobs.job(id));
    if (is_over(status)) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void vms_come_and_go(HostWorld& world) {
  const HostAgent host = world.host();
  CHECK(value(host.vms.capacity()).cpus > 0);
  CHECK(value(host.vms.list_vms("")).empty());
  const std::string uid = new_ulid(SystemClock().wall());
  const CreateVmRequest request{
      .name = "Fuse_Train", .uid = uid, .idempotency_key = "op-1", .cluster = "c-1"};
  const VmInfo made = value(host.vms.create_vm(request));
  CHECK(made.vm_id == "fuse-train");
  CHECK(made.uid == uid);
  CHECK(made.cluster == "c-1");
  CHECK(made.alive);
  // The same create again is the same VM; another one may not have its name.
  CHECK(value(host.vms.create_vm(request)).uid == uid);
  const Error taken = refusal(host.vms.create_vm({.name = "fuse-train"}));
  CHECK(taken.code == ErrorCode::conflict);
  CHECK(taken.message == "vm fuse-train already exists");
  for (const std::string& id : {uid, std::string("fuse-train"), std::string("Fuse_Train")}) {
    CHECK(value(host.vms.get_vm(id)).uid == uid);
  }
  CHECK(value(host.vms.list_vms("fuse-")).size() == 1);
  CHECK(value(host.vms.list_vms("other")).empty());
  const VmInfo unnamed = value(host.vms.create_vm({}));
  CHECK(unnamed.vm_id.starts_with("vm-"));
  CHECK(unnamed.uid.size() == 26);
  succeed(host.vms.destroy_vm(unnamed.vm_id));
  succeed(host.vms.destroy_vm(uid));
  CHECK(refusal(host.vms.destroy_vm(uid)).code == ErrorCode::not_found);
  CHECK(refusal(host.vms.get_vm(uid)).message == "vm not found");
}

void creates_are_refused_in_words(HostWorld& world) {
  const HostAgent host = world.host();
  const Error negative = refusal(host.vms.create_vm({.name = "a", .cpus = -1}));
  CHECK(negative.code == ErrorCode::invalid_argument);
  CHECK(negative.message == "cpus must not be negative");
  const Error gpus = refusal(host.vms.create_vm({.name = "a", .gpus = 2, .gpu_kind = "a100"}));
  CHECK(gpus.code == ErrorCode::conflict);
  CHECK(gpus.message ==
        "insufficient free gpus: requested 2 of kind 'a100', 0 available in complete iommu groups");
  const Error image = refusal(host.vms.create_vm({.name = "a", .image = "no-such"}));
  CHECK((image.code == ErrorCode::not_found || image.code == ErrorCode::invalid_argument));
  CHECK(image.message == "base image 'no-such' not found");
  CHECK(value(host.vms.list_vms("")).empty());
}

void nothing_is_found_of_what_is_not_there(HostWorld& world) {
  const HostAgent host = world.host();
  const auto not_found = [](const auto& result) {
    const Error error = refusal(result);
    CHECK(error.code == ErrorCode::not_found);
    CHECK(error.message == "vm not found");
  };
  not_found(host.vms.get_vm("a"));
  not_found(host.vms.destroy_vm("a"));
  not_found(host.guests.upload("a", {.path = "/x"}));
  not_found(host.guests.exec("a", {.cmd = {"true"}}));
  not_found(host.guests.start_agent("a", {}));
  not_found(host.jobs.start_job("a", {.script = "true"}));
  not_found(host.jobs.job("a"));
  not_found(host.jobs.stop_job("a"));
  CHECK(refusal(host.guests.attach("a", {.cmd = {"true"}})).message == "vm not found");
  CHECK(refusal(host.jobs.logs("a", {}, [](std::string_view) { return true; }, {})).message ==
        "vm not found");
}

void commands_and_files(HostWorld& world) {
  const VmInfo vm = make(world);
  GuestAgent& guests = world.host().guests;
  const std::string bytes = random_bytes(2'000'000);
  succeed(guests.upload(vm.uid, {.path = "/data/in", .bytes = bytes, .mode = 0751}));
  const ExecResult read = value(guests.exec(vm.vm_id, {.shell = "printf '\\377\\0'; exit 7"}));
  CHECK(read.exit_code == 7);
  CHECK(read.out == std::string("\xff\0", 2));
  CHECK(read.err.empty());
  const ExecResult words = value(guests.exec(
      vm.uid, {.cmd = {"sh", "-c", "printf '[%s]' \"$@\" >&2", "sh", "a b", "", "$HOME", "ü\n"}}));
  CHECK(words.err == "[a b][][$HOME][ü\n]");
  const ExecResult late = value(guests.exec(vm.uid, {.cmd = {"sleep", "600"}, .timeout_ms = 200}));
  CHECK(late.exit_code == 124);
  CHECK(late.out.empty());
  CHECK(late.err.starts_with("timeout:"));
  CHECK(refusal(guests.exec(vm.uid, {})).message.find("cmd") != std::string::npos);
  succeed(world.host().vms.destroy_vm(vm.uid));
}

void sessions(HostWorld& world) {
  const VmInfo vm = make(world);
  const auto session = value(world.host().guests.attach(
      vm.uid, {.cmd = {"sh", "-c", "cat; echo done >&2; exit 9"}, .tty = false}));
  const std::string input = random_bytes(300'000);
  std::jthread writer([&] {
    for (std::size_t at = 0; at < input.size(); at += 50'000) {
      (void)session->write({AttachFrameType::stdin_bytes, input.substr(at, 50'000)});
    }
    (void)session->write({AttachFrameType::stdin_bytes, ""});
  });
  std::string out;
  std::string err;
  std::optional<int> code;
  for (;;) {
    const auto frame = value(session->read());
    if (!frame) break;
    if (frame->type == AttachFrameType::stdout_bytes) out += frame->payload;
    if (frame->type == AttachFrameType::stderr_bytes) err += frame->payload;
    if (frame->type == AttachFrameType::exit) code = parse_exit(frame->payload);
  }
  CHECK(out == input);
  CHECK(err == "done\n");
  CHECK(code == 9);
  writer.join();
  succeed(world.host().vms.destroy_vm(vm.uid));
}

void endpoints(HostWorld& world) {
  const VmInfo vm = make(world);
  CHECK(value(world.host().guests.start_agent(vm.uid, {})).empty());
  const auto there =
      value(world.host().guests.start_agent(vm.uid, {.expose = {{.port = 8080, .as = "http"}}}));
  REQUIRE(there.size() == 1);
  CHECK(there[0].as == "http");
  CHECK(there[0].port == 8080);
  CHECK(there[0].host_port > 0);
  CHECK(there[0].url.ends_with(cat(":", there[0].host_port)));
  CHECK(refusal(world.host().guests.start_agent(vm.uid, {.expose = {{.port = 70'000}}})).code ==
        ErrorCode::invalid_argument);
  succeed(world.host().vms.destroy_vm(vm.uid));
}

void jobs(HostWorld& world) {
  const VmInfo vm = make(world);
  JobAgent& jobs = world.host().jobs;
  CHECK(refusal(jobs.job(vm.uid)).code == ErrorCode::not_found);
  const fs::path go = fs::path(world.folder()) / "go";
  const std::string noise = hex_encode(random_bytes(150'000));
  std::ofstream(fs::path(world.folder()) / "noise") << noise;
  const int code = 1 + static_cast<unsigned char>(random_bytes(1)[0]) % 200;
  succeed(jobs.start_job(vm.uid, {.steps = {{.name = "first", .script = "echo built $WORD"}},
                                  .script = cat("echo begun; ", script_until(go), "cat ",
                                                world.folder(), "/noise; exit ", code),
                                  .env = {{"WORD", "it's"}}}));
  CHECK(refusal(jobs.start_job(vm.uid, {.script = "true"})).code == ErrorCode::conflict);
  std::string live;
  const std::string start = "built it's\nbegun\n";
  const LogRange range = value(jobs.logs(vm.uid, {.follow = true},
                                         [&](std::string_view bytes) {
                                           live += bytes;
                                           // The first lines are here while the job still waits.
                                           if (live == start) fs::remove(go);
                                           return true;
                                         },
                                         {}));
  CHECK(live == start + noise);
  CHECK(range.begin == 0);
  CHECK(range.end == live.size());
  const JobStatus ended = await_end(world, vm.uid);
  CHECK(ended.state == JobState::exited);
  CHECK(ended.exit_code == code);
  CHECK(ended.reason == "exited");
  CHECK(ended.steps == 1);
  CHECK(whole_log(world, vm.uid, {.offset = 6}) == live.substr(6));
  CHECK(whole_log(world, vm.uid, {.tail = 1}) == noise);
  // A sink that has enough ends it.
  const LogRange first =
      value(jobs.logs(vm.uid, {.follow = true}, [](std::string_view) { return false; }, {}));
  CHECK(first.begin == 0);

  // Both outlive the VM.
  succeed(world.host().vms.destroy_vm(vm.uid));
  CHECK(await_end(world, vm.uid).exit_code == code);
  CHECK(whole_log(world, vm.uid, {.follow = true}) == live);
}

void stops(HostWorld& world) {
  const VmInfo vm = make(world);
  JobAgent& jobs = world.host().jobs;
  succeed(jobs.start_job(
      vm.uid, {.script = cat("echo up; ", script_until(fs::path(world.folder()) / "never"))}));
  // Who follows is told to leave off while nothing comes.
  std::stop_source stop;
  std::string seen;
  value(jobs.logs(
      vm.uid, {.follow = true},
      [&](std::string_view bytes) {
        seen += bytes;
        if (seen == "up\n") stop.request_stop();
        return true;
      },
      stop.get_token()));
  CHECK(seen == "up\n");
  succeed(jobs.stop_job(vm.uid));
  const JobStatus ended = await_end(world, vm.uid);
  CHECK(ended.reason == "stopped");
  CHECK(ended.exit_code == 143);
  succeed(world.host().vms.destroy_vm(vm.uid));
}

constexpr std::array<void (*)(HostWorld&), 8> parts = {
    vms_come_and_go,
    creates_are_refused_in_words,
    nothing_is_found_of_what_is_not_there,
    commands_and_files,
    sessions,
    endpoints,
    jobs,
    stops,
};

}  // namespace

void check_host_agent(const HostWorldFactory& make_world) {
  for (const auto& part : parts) {
    const auto world = make_world();
    part(*world);
  }
}

}  // namespace fuse
