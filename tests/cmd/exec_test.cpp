#include <fcntl.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <deque>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/fd.h"
#include "net/attach_frames.h"
#include "tests/cmd/world.h"

namespace fuse::cmd {

namespace {

// What happened in a session, kept after the session itself.
struct SessionRecord {
  std::mutex mutex{};
  std::condition_variable changed{};
  std::deque<AttachFrame> to_client{};
  std::string input{};
  bool input_ended = false;
  std::vector<std::string> sizes{};
  bool closed = false;
};

// Answers `script` once its whole input has come.
class FakeSession final : public AttachSession {
 public:
  FakeSession(std::shared_ptr<SessionRecord> record, bool waits_for_input)
      : record_(std::move(record)), waits_for_input_(waits_for_input) {}

  Result<std::optional<AttachFrame>> read() override {
    std::unique_lock lock(record_->mutex);
    record_->changed.wait(
        lock, [this] { return record_->closed || record_->input_ended || !waits_for_input_; });
    if (record_->closed || record_->to_client.empty()) return std::optional<AttachFrame>();
    AttachFrame frame = std::move(record_->to_client.front());
    record_->to_client.pop_front();
    return std::optional<AttachFrame>(std::move(frame));
  }
  Result<void> write(const AttachFrame& frame) override {
    {
      const std::scoped_lock lock(record_->mutex);
      if (frame.type == AttachFrameType::resize) record_->sizes.push_back(frame.payload);
      if (frame.type == AttachFrameType::stdin_bytes) {
        record_->input += frame.payload;
        record_->input_ended = record_->input_ended || frame.payload.empty();
      }
    }
    record_->changed.notify_all();
    return {};
  }
  void close() override {
    {
      const std::scoped_lock lock(record_->mutex);
      record_->closed = true;
    }
    record_->changed.notify_all();
  }

 private:
  std::shared_ptr<SessionRecord> record_;
  bool waits_for_input_;
};

AttachFrame frame(AttachFrameType type, std::string payload) {
  return {.type = type, .payload = std::move(payload)};
}

// A world whose guest plays one session.
struct SessionWorld : World {
  std::shared_ptr<SessionRecord> record = std::make_shared<SessionRecord>();
  std::vector<AttachRequest> asked{};

  explicit SessionWorld(bool waits_for_input = true) {
    environments.attach_with =
        [this,
         waits_for_input](const AttachRequest& request) -> Result<std::unique_ptr<AttachSession>> {
      asked.push_back(request);
      return std::unique_ptr<AttachSession>(std::make_unique<FakeSession>(record, waits_for_input));
    };
  }
  // Gives the command a standard input that holds `text`.
  void type(const std::string& text) {
    int ends[2] = {-1, -1};
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    input_ = Fd(ends[0]);
    const Fd write_end(ends[1]);
    REQUIRE(::write(write_end.get(), text.data(), text.size()) ==
            static_cast<ssize_t>(text.size()));
    terminal.input = input_.get();
  }

 private:
  Fd input_{};
};

}  // namespace

TEST_CASE("exec connects the command's streams with ours and exits with its code") {
  SessionWorld world;
  world.type("some input");
  world.record->to_client = {frame(AttachFrameType::stdout_bytes, "out\n"),
                             frame(AttachFrameType::stderr_bytes, "err\n"),
                             frame(AttachFrameType::stdout_bytes, std::string("\0\xff", 2)),
                             frame(AttachFrameType::exit, encode_exit(42))};
  CHECK(world.fuse({"exec", "fuse-a", "--", "sh", "-c", "[a,b]", "--", "-o", ""}) == 42);
  CHECK(world.out.str() == "out\n" + std::string("\0\xff", 2));
  CHECK(world.err.str() == "err\n");
  CHECK(world.record->input == "some input");
  REQUIRE(world.asked.size() == 1);
  CHECK_FALSE(world.asked[0].tty);
  CHECK(world.asked[0].cmd == std::vector<std::string>{"sh", "-c", "[a,b]", "--", "-o", ""});
}

TEST_CASE("exec on a terminal gives the command no input") {
  SessionWorld world;
  world.terminal.in = true;
  world.record->to_client = {frame(AttachFrameType::exit, encode_exit(0))};
  CHECK(world.fuse({"environment", "exec", "fuse-a", "ls"}) == 0);
  CHECK(world.record->input.empty());
  CHECK(world.record->input_ended);
  CHECK(world.asked.at(0).cmd == std::vector<std::string>{"ls"});
}

TEST_CASE("exec takes shell text instead of a command, not both and not neither") {
  SessionWorld world;
  world.terminal.in = true;
  world.record->to_client = {frame(AttachFrameType::exit, encode_exit(0))};
  CHECK(world.fuse({"exec", "fuse-a", "--shell", "echo $HOME | wc"}) == 0);
  CHECK(world.asked.at(0).cmd == std::vector<std::string>{"sh", "-lc", "echo $HOME | wc"});
  CHECK(world.fuse({"exec", "fuse-a"}) == fuse_failed);
  CHECK(world.fuse({"exec", "fuse-a", "--shell", "x", "--", "y"}) == fuse_failed);
  CHECK(world.asked.size() == 1);
  CHECK(world.err.str().find("fuse exec fuse-a -- COMMAND") != std::string::npos);
}

TEST_CASE("a line that breaks before the command's end is fuse's own failure") {
  SessionWorld world;
  world.terminal.in = true;
  world.record->to_client = {frame(AttachFrameType::stdout_bytes, "part")};
  CHECK(world.fuse({"exec", "fuse-a", "--", "x"}) == fuse_failed);
  CHECK(world.out.str() == "part");
  CHECK(world.err.str().find("the connection to fuse-a ended before the command did") !=
        std::string::npos);
}

TEST_CASE("a signal ends an exec with the signal's code") {
  SessionWorld world;
  world.terminal.in = false;
  int ends[2] = {-1, -1};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  world.terminal.input = read_end.get();
  auto attach = world.environments.attach_with;
  world.environments.attach_with = [&](const AttachRequest& request) {
    world.signals.raise(SIGTERM);
    return attach(request);
  };
  CHECK(world.fuse({"exec", "fuse-a", "--", "x"}) == terminated);
  CHECK(world.record->closed);
}

TEST_CASE("exec as JSON, or with a time limit, asks for the whole answer") {
  World world;
  std::vector<ExecRequest> asked;
  world.environments.exec_with = [&asked](const ExecRequest& request) -> Result<ExecResult> {
    asked.push_back(request);
    return ExecResult{.exit_code = 4, .out = "o", .err = "e"};
  };
  CHECK(world.fuse({"exec", "fuse-a", "-o", "json", "--", "x", "y"}) == 4);
  CHECK(nlohmann::json::parse(world.out.str()) ==
        nlohmann::json({{"exit_code", 4}, {"stdout", "o"}, {"stderr", "e"}}));
  CHECK(world.fuse({"exec", "fuse-a", "--timeout", "1m30s", "--", "x"}) == 4);
  CHECK(world.err.str() == "e");
  REQUIRE(asked.size() == 2);
  CHECK(asked[0].cmd == std::vector<std::string>{"x", "y"});
  CHECK(asked[0].timeout_ms == 0);
  CHECK(asked[1].timeout_ms == 90'000);
  CHECK(world.fuse({"exec", "fuse-a", "--timeout", "soon", "--", "x"}) == fuse_failed);
}

TEST_CASE("exec works with an orchestrator that only knows terminals") {
  World world;
  world.environments.attach_with =
      [](const AttachRequest&) -> Result<std::unique_ptr<AttachSession>> {
    return Error{ErrorCode::invalid_argument,
                 "attach requires tty=1; use ?action=exec for non-interactive commands"};
  };
  world.environments.exec_with = [](const ExecRequest&) -> Result<ExecResult> {
    return ExecResult{.exit_code = 5, .out = "all"};
  };
  CHECK(world.fuse({"exec", "fuse-a", "--", "x"}) == 5);
  CHECK(world.out.str() == "all");
}

TEST_CASE("shell puts the terminal into raw mode and restores it, whatever the end") {
  for (const bool broken : {false, true}) {
    SessionWorld world;
    world.type("exit 7\n");
    world.terminal.in = true;
    world.terminal.window = {.rows = 33, .cols = 101};
    world.record->to_client = {frame(AttachFrameType::stdout_bytes, "$ ")};
    if (!broken) world.record->to_client.push_back(frame(AttachFrameType::exit, encode_exit(7)));
    CHECK(world.fuse({"shell", "fuse-a"}) == (broken ? fuse_failed : 7));
    CHECK(world.out.str() == "$ ");
    CHECK(world.terminal.raw_modes == 1);
    CHECK(world.terminal.raw_now == 0);
    CHECK(world.record->input == "exit 7\n");
    REQUIRE(world.asked.size() == 1);
    CHECK(world.asked[0].tty);
    CHECK(world.asked[0].cmd.empty());
    CHECK(world.asked[0].rows == 33);
    CHECK(world.asked[0].cols == 101);
  }
}

TEST_CASE("shell follows the terminal's size and ends on a signal") {
  SessionWorld world;
  int ends[2] = {-1, -1};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  world.terminal.in = true;
  world.terminal.input = read_end.get();
  const std::jthread user([&world] {
    // Once it is in raw mode, somebody resizes the window and closes it.
    while (world.terminal.raw_modes == 0) std::this_thread::yield();
    world.terminal.window = {.rows = 20, .cols = 70};
    world.signals.raise(SIGWINCH);
    world.signals.raise(SIGHUP);
  });
  CHECK(world.fuse({"ssh", "fuse-a", "--", "top", "-d", "1"}) == hung_up);
  REQUIRE(world.record->sizes.size() == 1);
  const auto size = parse_resize(world.record->sizes[0]);
  REQUIRE(size);
  CHECK(size->rows == 20);
  CHECK(size->cols == 70);
  CHECK(world.terminal.raw_now == 0);
  CHECK(world.asked.at(0).cmd == std::vector<std::string>{"top", "-d", "1"});
}

}  // namespace fuse::cmd
