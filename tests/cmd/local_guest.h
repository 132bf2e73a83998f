#pragma once

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/posix_process.h"
#include "net/attach_frames.h"
#include "orchestrator/api/environment_api.h"
#include "tests/catch.h"

namespace fuse::cmd {

// A session with a process of this machine, in place of one of a guest.
class LocalSession final : public AttachSession {
 public:
  explicit LocalSession(const std::vector<std::string>& argv) {
    // Of a command that has ended without reading all: an error, as of a guest's.
    ::signal(SIGPIPE, SIG_IGN);
    std::array<Fd, 3> childs_own;
    childs_own[0] = make_pipe(input_, false);
    childs_own[1] = make_pipe(outputs_[0], true);
    childs_own[2] = make_pipe(outputs_[1], true);
    auto started = spawn_process({.argv = argv,
                                  .stdin_fd = childs_own[0].get(),
                                  .stdout_fd = childs_own[1].get(),
                                  .stderr_fd = childs_own[2].get(),
                                  .new_session = true});
    REQUIRE(started);
    process_ = *std::move(started);
  }
  LocalSession(const LocalSession&) = delete;
  LocalSession& operator=(const LocalSession&) = delete;
  ~LocalSession() override { close(); }

  Result<std::optional<AttachFrame>> read() override {
    while (outputs_[0].valid() || outputs_[1].valid()) {
      std::array<pollfd, 2> events{pollfd{outputs_[0].get(), POLLIN, 0},
                                   pollfd{outputs_[1].get(), POLLIN, 0}};
      ::poll(events.data(), events.size(), -1);
      for (std::size_t i = 0; i < 2; ++i) {
        if (events[i].revents == 0) continue;
        std::string bytes(10'000, '\0');
        const ssize_t got = ::read(outputs_[i].get(), bytes.data(), bytes.size());
        if (got <= 0) {
          outputs_[i].reset();
          continue;
        }
        bytes.resize(static_cast<std::size_t>(got));
        const auto type = i == 0 ? AttachFrameType::stdout_bytes : AttachFrameType::stderr_bytes;
        return std::optional<AttachFrame>({.type = type, .payload = std::move(bytes)});
      }
    }
    if (closed_ || told_) return std::optional<AttachFrame>();
    const auto status = process_->wait(std::chrono::seconds(60));
    REQUIRE(status);
    REQUIRE(*status);
    if (closed_) return std::optional<AttachFrame>();
    told_ = true;
    return std::optional<AttachFrame>(
        {.type = AttachFrameType::exit, .payload = encode_exit((*status)->shell_code())});
  }

  Result<void> write(const AttachFrame& frame) override {
    if (frame.payload.empty()) {
      input_.reset();
      return {};
    }
    std::string_view rest = frame.payload;
    while (!rest.empty()) {
      // As in a guest, a command that does not read is no obstacle.
      const ssize_t wrote = ::write(input_.get(), rest.data(), rest.size());
      if (wrote < 0) return closed_ ? Result<void>(Error{}) : Result<void>();
      rest.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return {};
  }

  void close() override {
    if (closed_.exchange(true)) return;
    ::kill(-process_->pid(), SIGKILL);
  }

 private:
  // The end that is not ours is answered.
  static Fd make_pipe(Fd& ours, bool we_read) {
    std::array<int, 2> fds{-1, -1};
    REQUIRE(::pipe2(fds.data(), O_CLOEXEC) == 0);
    ours = Fd(fds[we_read ? 0 : 1]);
    return Fd(fds[we_read ? 1 : 0]);
  }

  Fd input_{};
  std::array<Fd, 2> outputs_{};
  std::unique_ptr<Process> process_{};
  std::atomic<bool> closed_{false};
  bool told_ = false;
};

// Runs a command to its end, as the exec route does.
inline ExecResult run_here(const ExecRequest& request) {
  LocalSession session(request.cmd);
  REQUIRE(session.write({}));
  ExecResult result;
  for (;;) {
    const auto frame = session.read();
    REQUIRE(frame);
    if (!*frame) return result;
    if ((*frame)->type == AttachFrameType::stdout_bytes) result.out += (*frame)->payload;
    if ((*frame)->type == AttachFrameType::stderr_bytes) result.err += (*frame)->payload;
    if ((*frame)->type == AttachFrameType::exit) {
      result.exit_code = parse_exit((*frame)->payload).value_or(-1);
    }
  }
}

}  // namespace fuse::cmd
