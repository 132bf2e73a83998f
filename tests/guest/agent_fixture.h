#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "base/host.h"
#include "base/posix_process.h"
#include "base/text.h"
#include "guest/channel/client.h"
#include "tests/catch.h"
#include "tests/guest/temp_dir.h"

namespace fuse {

// Generous: the machine may be busy, and a hang is what it is for.
inline constexpr GuestLimits patient{.hello = std::chrono::seconds(60),
                                     .silence = std::chrono::seconds(60)};

// An agent in a process of its own, as in a guest, with a root of its own, and a
// socket that takes one connection at a time, as QEMU's does.
class AgentFixture {
 public:
  AgentFixture() { start(); }
  // With a limit to what its job's log may take.
  explicit AgentFixture(std::uint64_t most_log_bytes) : most_log_bytes_(most_log_bytes) { start(); }

  [[nodiscard]] fs::path root() const { return dir_.path() / "root"; }
  [[nodiscard]] Process& process() { return *process_; }

  void start() {
    process_.reset();
    fs::create_directories(root());
    auto started = spawn_process(
        {.argv = {GUEST_AGENT_PROCESS, root(), socket(), std::to_string(most_log_bytes_)},
         .stderr_fd = 2});
    REQUIRE(started);
    process_ = *std::move(started);
  }

  void kill() {
    REQUIRE(process_->signal(SIGKILL));
    REQUIRE(process_->wait(std::chrono::seconds(60)));
  }

  std::unique_ptr<GuestClient> client(const GuestLimits& limits = patient) {
    auto connected = GuestClient::connect(connection(), limits);
    REQUIRE(connected);
    return *std::move(connected);
  }

  Fd connection() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, socket().c_str(), socket().native().size());
    while (true) {
      Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
        return fd;
      }
      // It has only just been started.
      REQUIRE_FALSE(process_->wait(std::chrono::milliseconds(5)).value());
    }
  }

 private:
  [[nodiscard]] fs::path socket() const { return dir_.path() / "ch.sock"; }

  TempDir dir_{};
  std::uint64_t most_log_bytes_ = 0;
  std::unique_ptr<Process> process_{};
};

inline GuestExecResult exec(GuestClient& client, std::vector<std::string> argv) {
  auto result = client.exec({.argv = std::move(argv)});
  REQUIRE(result);
  return *std::move(result);
}

inline GuestExecResult shell(GuestClient& client, const std::string& script) {
  return exec(client, {"/bin/sh", "-c", script});
}

// Whether a process still runs, and is not merely unreaped.
inline bool is_running(pid_t pid) {
  std::string stat;
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(cat("/proc/", pid, "/stat").c_str(), "re"),
                                             std::fclose);
  if (!file) return false;
  char buffer[256] = {};
  if (std::fgets(buffer, sizeof buffer, file.get()) == nullptr) return false;
  stat = buffer;
  return stat.find(") Z") == std::string::npos;
}

// Waits for it; a test that hangs here is killed by the limit of the whole run.
inline void wait_until_gone(pid_t pid) {
  while (is_running(pid)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

}  // namespace fuse
