// The agent with the real QEMU and the image "micro".  FUSE_BIN is the executable
// that becomes the guest's init, FUSE_TEST_IMAGES the folder with the images.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <future>
#include <iostream>

#include "base/crypto.h"
#include "base/ids.h"
#include "base/text.h"
#include "hostmode/agent.h"
#include "hostmode/image_store.h"
#include "tests/catch.h"
#include "tests/hostmode/agent_fixture.h"
#include "tests/hostmode/leak_check.h"
#include "tests/hostmode/test_dir.h"

namespace fuse {
namespace {

using Leaks = std::vector<std::string>;

std::string required_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) FAIL(cat("the variable ", name, " is not set"));
  return value;
}

// Agents on one state directory, one after another, with real VMs.
class RealHost {
 public:
  RealHost()
      : images_({.dir = required_variable("FUSE_TEST_IMAGES"),
                 .agent = required_variable("FUSE_BIN"),
                 .agent_build = sha256_of_file(required_variable("FUSE_BIN")).value()}),
        log_(std::cerr, clock_, LogFormat::text, LogLevel::warning) {}
  ~RealHost() {
    for (const VmInfo& vm : agent().list_vms("").value()) (void)agent().destroy_vm(vm.uid);
  }
  RealHost(const RealHost&) = delete;
  RealHost& operator=(const RealHost&) = delete;

  Agent& agent() {
    if (agent_ == nullptr) {
      AgentConfig config;
      config.state_dir = root() / "state";
      config.accel = AccelPolicy::tcg;
      config.boot_budget = std::chrono::minutes(5);
      auto started = Agent::start(
          {.host = host_,
           .clock = clock_,
           .log = log_,
           .resolve_image = [this](const std::string& name) { return images_.resolve(name); }},
          config);
      if (!started) FAIL(started.error().message);
      agent_ = std::move(started).value();
    }
    return *agent_;
  }
  void drop_agent() { agent_.reset(); }

  VmInfo create() {
    const auto made = agent().create_vm({.name = "fuse-real", .memory_mb = 256, .image = "micro"});
    if (!made) FAIL(made.error().message);
    return *made;
  }
  ExecResult shell(const std::string& script) {
    const auto ran = agent().exec("fuse-real", {.cmd = {}, .shell = script, .timeout_ms = 0});
    if (!ran) FAIL(ran.error().message);
    return *ran;
  }
  [[nodiscard]] const fs::path& root() const { return dir_.path(); }
  [[nodiscard]] StatePaths paths() const { return StatePaths(root() / "state"); }
  PosixHost& host() { return host_; }

 private:
  TestDir dir_;
  PosixHost host_;
  SystemClock clock_;
  ImageStore images_;
  StreamLog log_;
  std::unique_ptr<Agent> agent_;
};

JobSpec job_of(const std::string& script) {
  JobSpec job;
  job.script = script;
  return job;
}

// What comes from a port of the loopback, "" when nobody answers there.
std::string read_from_port(std::int32_t port) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) < 0) return "";
  std::string all;
  std::array<char, 256> buffer{};
  for (ssize_t got = 1; got > 0;) {
    got = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
    all.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  }
  return all;
}

TEST_CASE("a job in a real VM: every byte, its code, its ports, and nothing left") {
  RealHost real;
  (void)real.agent();
  const LeakCheck check(real.root());
  const VmInfo vm = real.create();

  CHECK(real.shell("hostname").out == "fuse-real\n");
  const auto guest_time = parse_int(trim(real.shell("date +%s").out));
  REQUIRE(guest_time);
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(SystemClock().wall().time_since_epoch())
          .count();
  CHECK(std::abs(*guest_time - now) < 120);

  // A key that the guest cannot have guessed decides about all of the output.
  const std::string key = random_hex(8);
  const int code = 1 + static_cast<unsigned char>(random_bytes(1)[0]) % 200;
  const auto started =
      real.agent().start_job(vm.vm_id, job_of(cat("i=0; while [ $i -lt 20000 ]; do echo ", key,
                                                  "-$i; i=$((i+1)); done; "
                                                  "echo oops >&2; exit ",
                                                  code)));
  if (!started) FAIL(started.error().message);
  std::string expected;
  for (int i = 0; i < 20000; ++i) expected += cat(key, "-", i, "\n");
  expected += "oops\n";
  const std::string got = whole_log(real.agent(), vm.vm_id);
  CHECK(got.size() == expected.size());
  CHECK((got == expected));
  CHECK(real.agent().job(vm.vm_id).value().exit_code == code);

  const auto endpoints = real.agent().start_agent(vm.vm_id, {.expose = {{7777, "greeting"}}});
  if (!endpoints) FAIL(endpoints.error().message);
  CHECK(real.shell(cat("(while :; do echo ", key,
                       " | nc -l -p 7777; done) >/dev/null 2>&1 & "
                       "true"))
            .exit_code == 0);
  CHECK(eventually([&] { return read_from_port((*endpoints)[0].host_port) == key + "\n"; }));

  REQUIRE(real.agent().destroy_vm(vm.vm_id));
  CHECK((whole_log(real.agent(), vm.uid) == expected));
  (void)eventually([&] { return check.leaks().empty(); });
  CHECK(check.leaks() == Leaks{});
}

TEST_CASE("a real VM and its job outlive the agent") {
  RealHost real;
  const VmInfo vm = real.create();
  const std::string key = random_hex(8);
  REQUIRE(
      real.agent().start_job(vm.vm_id, job_of(cat("i=0; while [ $i -lt 300 ]; do echo ", key,
                                                  "-$i; i=$((i+1)); sleep 0.01; done; exit 42"))));
  CHECK(eventually([&] { return !read_text(real.paths().vm(vm.uid, "job.log")).empty(); }));

  real.drop_agent();
  REQUIRE(real.agent().list_vms("fuse-").value().size() == 1);

  std::string expected;
  for (int i = 0; i < 300; ++i) expected += cat(key, "-", i, "\n");
  CHECK(whole_log(real.agent(), vm.vm_id) == expected);
  CHECK(real.agent().job(vm.vm_id).value().exit_code == 42);
  CHECK(real.shell("echo still here").out == "still here\n");
  REQUIRE(real.agent().destroy_vm(vm.vm_id));
}

TEST_CASE("a real VM that powers off has ended, and says so") {
  RealHost real;
  const VmInfo vm = real.create();
  REQUIRE(real.agent().start_job(vm.vm_id, job_of("echo bye; sleep 1; poweroff -f")));
  CHECK(whole_log(real.agent(), vm.vm_id) == "bye\n");
  CHECK(eventually([&] { return !real.agent().get_vm(vm.vm_id).value().alive; }));
  CHECK(real.agent().get_vm(vm.vm_id).value().ended == "the guest powered off");
  CHECK(real.agent().job(vm.vm_id).value().state == JobState::lost);
  REQUIRE(real.agent().destroy_vm(vm.vm_id));
}

}  // namespace
}  // namespace fuse
