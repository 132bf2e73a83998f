#include "cmd/output.h"

#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/text.h"
#include "base/units.h"
#include "cmd/progress.h"
#include "cmd/signals.h"
#include "tests/cmd/world.h"

namespace fuse::cmd {

namespace {

// Time that passes when the test says so.
class TestClock final : public Clock {
 public:
  [[nodiscard]] WallTime wall() const override { return {}; }
  [[nodiscard]] SteadyTime steady() const override { return now; }
  void sleep(std::chrono::nanoseconds time) override { now += time; }
  SteadyTime now{};
};

EnvironmentEvent build_step(std::optional<int> exit_code = {}) {
  EnvironmentEvent event = step_event("build", "pip install x");
  event.index = 2;
  event.total = 3;
  event.exit_code = exit_code;
  return event;
}

}  // namespace

TEST_CASE("columns of a table are as wide as their widest cell, in characters") {
  std::ostringstream out;
  Table table({"A", "LONG HEAD", "C"});
  table.add({"ünïcödé", "x", "1"});
  table.add({"y", "", ""});
  table.print(out, false);
  CHECK(out.str() ==
        "A         LONG HEAD   C\n"
        "ünïcödé   x           1\n"
        "y\n");
}

TEST_CASE("JSON has an indent of two and escapes nothing that need not be") {
  std::ostringstream out;
  print_json(out, {{"a", "<&>ü\xff"}, {"b", {1}}});
  CHECK(out.str() == "{\n  \"a\": \"<&>ü\xEF\xBF\xBD\",\n  \"b\": [\n    1\n  ]\n}\n");
}

TEST_CASE("what others wrote cannot move the cursor") {
  CHECK(printable("a\x1b[2J\nb\tc\x7f\xff") == "a [2J b c \xEF\xBF\xBD");
}

TEST_CASE("an age is told for people") {
  const WallTime now = *parse_rfc3339("2026-11-30T10:05:00Z");
  CHECK(age_of("2026-11-30T10:03:40Z", now) == "1 m 20 s");
  CHECK(age_of("2026-11-30T10:06:00Z", now) == human_duration(std::chrono::seconds(0)));
  CHECK(age_of("", now) == "-");
}

TEST_CASE("plain progress is one line for each step that ended, and a sign of life in long ones") {
  TestClock clock;
  std::ostringstream out;
  Progress progress(out, clock, {.style = ProgressStyle::plain});
  progress.step(step_event("create_vm", "start the vm"));
  clock.now += std::chrono::seconds(5);
  progress.tick();
  CHECK(out.str().empty());
  clock.now += std::chrono::seconds(10);
  progress.tick();
  progress.step(step_event("create_vm", "start the vm", 15'300));
  progress.step(build_step());
  clock.now += std::chrono::milliseconds(2400);
  progress.step(build_step(7));
  const auto line = [](std::string_view label, std::string_view text, std::string_view right) {
    return cat("  ", padded(label, 14), " ", padded(text, 44), "  ", right, "\n");
  };
  CHECK(out.str() == line("create vm", "start the vm", "15.0 s so far") +
                         line("create vm", "start the vm", "15.3 s") +
                         line("build 2/3", "pip install x: exit 7", "2.4 s"));
}

TEST_CASE("a step that was lost with its VM is told as lost, not as a code") {
  TestClock clock;
  std::ostringstream out;
  Progress progress(out, clock, {.style = ProgressStyle::plain});
  progress.step(build_step());
  EnvironmentEvent lost = build_step();
  lost.error = "lost";
  progress.step(lost);
  CHECK(out.str().find("pip install x: lost") != std::string::npos);
  CHECK(out.str().find("exit") == std::string::npos);
  // It is over: nothing is said of it any more.
  const std::string before = out.str();
  clock.now += std::chrono::minutes(1);
  progress.tick();
  CHECK(out.str() == before);
}

TEST_CASE("live progress rewrites its line and leaves only what ended") {
  TestClock clock;
  std::ostringstream out;
  {
    Progress progress(out, clock, {.style = ProgressStyle::live, .columns = 200});
    progress.step(step_event("boot", "guest"));
    clock.now += std::chrono::seconds(3);
    progress.tick();
    progress.line("a word between");
    progress.stop_live();
    progress.step(step_event("boot", "guest", 4000));
  }
  std::string text = out.str();
  CHECK(text.find("3.0 s") != std::string::npos);
  // What stays on the screen: everything that was not taken back.
  std::string screen;
  std::size_t begin = 0;
  for (std::size_t at = text.find("\r\x1b[K"); at != std::string::npos;
       at = text.find("\r\x1b[K", begin)) {
    const std::string piece = text.substr(begin, at - begin);
    screen += piece.substr(0, piece.rfind('\n') == std::string::npos ? 0 : piece.rfind('\n') + 1);
    begin = at + 4;
  }
  screen += text.substr(begin);
  CHECK(screen ==
        cat("a word between\n  ", padded("boot", 14), " ", padded("guest", 44), "  4.0 s\n"));
}

TEST_CASE("a live line never wraps") {
  TestClock clock;
  std::ostringstream out;
  Progress progress(out, clock, {.style = ProgressStyle::live, .columns = 30});
  progress.step(step_event("boot", std::string(100, 'x')));
  CHECK(width_of(out.str()) < 30);
}

TEST_CASE("no progress is nothing at all") {
  TestClock clock;
  std::ostringstream out;
  Progress progress(out, clock, {.style = ProgressStyle::none});
  progress.step(step_event("boot", "guest"));
  progress.step(step_event("boot", "guest", 4000));
  progress.line("x");
  CHECK(out.str().empty());
}

TEST_CASE("a watched signal goes to its handler and no further") {
  std::atomic<int> got{0};
  {
    const auto watch = watch_signals({SIGUSR1, SIGUSR2}, [&got](int number) { got = number; });
    ::kill(::getpid(), SIGUSR2);
    while (got == 0) std::this_thread::yield();
  }
  CHECK(got == SIGUSR2);
}

TEST_CASE("a signal that is ignored stays ignored under a watch") {
  const auto before = std::signal(SIGUSR1, SIG_IGN);
  std::atomic<int> ignored{0};
  std::atomic<int> watched{0};
  {
    const auto watch = watch_signals(
        {SIGUSR1, SIGUSR2}, [&](int number) { ++(number == SIGUSR1 ? ignored : watched); });
    ::kill(::getpid(), SIGUSR1);
    ::kill(::getpid(), SIGUSR2);
    while (watched == 0) std::this_thread::yield();
  }
  std::signal(SIGUSR1, before);
  CHECK(ignored == 0);
  CHECK(watched == 1);
}

TEST_CASE("the state is kept where the environment says") {
  const auto config_of = [](std::map<std::string, std::string> variables) {
    return read_config([variables](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
  };
  CHECK(config_of({{"HOME", "/h"}})->state_dir == "/h/.local/state/fuse");
  CHECK(config_of({{"HOME", "/h"}, {"XDG_STATE_HOME", "/x"}})->state_dir == "/x/fuse");
  CHECK(config_of({{"HOME", "/h"}, {"XDG_STATE_HOME", "relative"}})->state_dir ==
        "/h/.local/state/fuse");
  CHECK(config_of({{"FUSE_STATE", "/s/../t"}})->state_dir == "/t");
  CHECK(config_of({{"HOME", "/h"}})->images_dir == "/h/.local/state/fuse/images");
  CHECK(config_of({{"HOME", "/h"}, {"FUSE_IMAGES", "/i"}})->images_dir == "/i");
  const auto nowhere = config_of({});
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().message.find("XDG_STATE_HOME") != std::string::npos);
  CHECK_FALSE(config_of({{"FUSE_STATE", "relative"}}));
  const auto images = config_of({{"HOME", "/h"}, {"FUSE_IMAGES", "build/images"}});
  REQUIRE_FALSE(images);
  CHECK(images.error().message == "FUSE_IMAGES must be an absolute path, got \"build/images\"");
}

TEST_CASE("a background process gets none of the user's other variables") {
  const auto environment =
      background_environment([](const std::string& name) -> std::optional<std::string> {
        return name == "AWS_SECRET_ACCESS_KEY" || name == "DATA_KEY" || name == "PATH"
                   ? std::optional<std::string>("value")
                   : std::nullopt;
      });
  CHECK(environment == std::vector<std::string>{"PATH=value"});
}

TEST_CASE("colours are for terminals that want them") {
  for (const auto& [variables, flag, terminal, wanted] :
       std::vector<std::tuple<std::map<std::string, std::string>, std::string, bool, bool>>{
           {{{"TERM", "xterm"}}, "auto", true, true},
           {{{"TERM", "xterm"}}, "auto", false, false},
           {{{"TERM", "dumb"}}, "auto", true, false},
           {{{"TERM", "xterm"}, {"NO_COLOR", "1"}}, "auto", true, false},
           {{{"TERM", "xterm"}, {"NO_COLOR", "1"}}, "always", false, true},
           {{{"TERM", "xterm"}}, "never", true, false}}) {
    World world;
    world.variables = variables;
    world.terminal.out = terminal;
    CHECK(world.fuse({"ps", "--color", flag}) == success);
    CHECK((world.out.str().find('\x1b') != std::string::npos) == wanted);
  }
}

}  // namespace fuse::cmd
