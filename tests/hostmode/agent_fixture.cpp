#include "tests/hostmode/agent_fixture.h"

#include <csignal>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "tests/catch.h"

namespace fuse {

namespace {

const std::string agent_process = GUEST_AGENT_PROCESS;
const std::string fake_qemu = cat(FUSE_SOURCE_DIR, "/tests/hostmode/fake_qemu.py");

Result<Image> image_called(const fs::path& root, const std::string& name) {
  if (name == "no-such") return Error{ErrorCode::not_found, "base image 'no-such' not found"};
  Image image{.name = name, .kernel = root / "kernel", .initrd = root / "initrd"};
  if (name == "foreign") image.kernel.clear();
  if (name == "disk") {
    image.disk = root / "base.qcow2";
    image.disk_bytes = 1U << 20U;
  }
  return image;
}

}  // namespace

FakeQemuHost::FakeQemuHost() {
  write_text(root() / "kernel", "");
  write_text(root() / "initrd", "");
  const fs::path program = root() / "qemu";
  write_text(program, cat("#!/bin/sh\nexec python3 ", fake_qemu, " ", (root() / "plan").native(),
                          " \"$@\"\n"));
  fs::permissions(program, fs::perms::owner_all);
  plan("");
  config.state_dir = root() / "state";
  config.qemu = program;
  config.accel = AccelPolicy::tcg;
  config.stop = {.power_off = std::chrono::seconds(20),
                 .quit = std::chrono::milliseconds(500),
                 .terminate = std::chrono::milliseconds(500),
                 .kill = std::chrono::seconds(20)};
}

FakeQemuHost::~FakeQemuHost() {
  agent_.reset();
  kill_all();
}

void FakeQemuHost::plan(const std::string& extra) {
  write_text(root() / "plan",
             cat(R"({"agent": ")", agent_process, R"(", "roots": ")", (root() / "guests").native(),
                 "\"", extra.empty() ? "" : ", ", extra, "}"));
}

void FakeQemuHost::plan_silent_guest(const std::string& extra) {
  write_text(root() / "plan", cat(R"({"agent": "")", extra.empty() ? "" : ", ", extra, "}"));
}

Result<std::unique_ptr<Agent>> FakeQemuHost::start_agent(Host& on) {
  return Agent::start(
      {.host = on,
       .clock = clock_,
       .log = log_,
       .resolve_image = [dir = root()](const std::string& name) { return image_called(dir, name); },
       .on_end = [this] { ++ends; },
       .reset = reset,
       .allow_locking = allow_locking},
      config);
}

Agent& FakeQemuHost::agent() {
  if (agent_ == nullptr) {
    auto started = start_agent(host);
    if (!started) FAIL(started.error().message);
    agent_ = std::move(started).value();
  }
  return *agent_;
}

VmInfo FakeQemuHost::create(const std::string& name) {
  const auto made = agent().create_vm({.name = name});
  if (!made) FAIL(made.error().message);
  return *made;
}

Result<ExecResult> FakeQemuHost::shell(const std::string& script, const std::string& vm_id) {
  return agent().exec(vm_id, {.cmd = {}, .shell = script, .timeout_ms = 60000});
}

void FakeQemuHost::kill_all() {
  const auto pids = host.list_dir("/proc").value();
  for (const std::string& pid : pids) {
    const auto number = parse_int(pid);
    const auto folder = host.read_link(fs::path("/proc") / pid / "cwd");
    if (number && folder && folder->native().starts_with(root().native())) {
      ::kill(static_cast<pid_t>(*number), SIGKILL);
    }
  }
}

std::string whole_log(Agent& agent, const std::string& id) {
  std::string bytes;
  const auto range = agent.logs(id, {.follow = true},
                                [&](std::string_view piece) {
                                  bytes += piece;
                                  return true;
                                },
                                {});
  return range ? bytes : cat("error: ", range.error().message);
}

}  // namespace fuse
