#include "guest/channel/messages.h"

#include <algorithm>

#include "guest/channel/frame.h"
#include "tests/catch.h"

namespace fuse {
namespace {

template <class T>
T round_trip(const T& operation) {
  const auto text = operation_text(operation);
  REQUIRE(text);
  CHECK(std::ranges::all_of(*text,
                            [](char c) { return (static_cast<unsigned char>(c) & 0x80U) == 0; }));
  auto parsed = parse_operation(*text);
  REQUIRE(parsed);
  REQUIRE(std::holds_alternative<T>(*parsed));
  return std::get<T>(*std::move(parsed));
}

TEST_CASE("an exec arrives as it was sent") {
  const auto got =
      round_trip(ExecOperation{.command = {.argv = {"sh", "-c", "echo \"\xC3\xA4\" \n"},
                                           .env = {{"A", "1"}, {"B", ""}},
                                           .workdir = "/w",
                                           .timeout = std::chrono::milliseconds(1500)},
                               .has_input = true});
  CHECK(got.command.argv == std::vector<std::string>{"sh", "-c", "echo \"\xC3\xA4\" \n"});
  CHECK(got.command.env == std::map<std::string, std::string>{{"A", "1"}, {"B", ""}});
  CHECK(got.command.workdir == "/w");
  CHECK(got.command.timeout == std::chrono::milliseconds(1500));
  CHECK(got.has_input);
}

TEST_CASE("an upload, an attach and the operations of a job arrive as they were sent") {
  const auto upload = round_trip(UploadOperation{.path = "/a b", .mode = 04755});
  CHECK(upload.path == "/a b");
  CHECK(upload.mode == 04755U);

  const auto attach = round_trip(AttachOperation{
      .request = {.cmd = {"bash", "-l"}, .tty = false, .rows = 3, .cols = 4}, .env = {{"T", "x"}}});
  CHECK(attach.request.cmd == std::vector<std::string>{"bash", "-l"});
  CHECK_FALSE(attach.request.tty);
  CHECK(attach.request.rows == 3);
  CHECK(attach.request.cols == 4);
  CHECK(attach.env == std::map<std::string, std::string>{{"T", "x"}});

  const auto start =
      round_trip(JobStartOperation{.key = "k",
                                   .spec = {.steps = {{"one", "true", "/x"}, {"two", "false", ""}},
                                            .script = "run",
                                            .env = {{"E", "v"}},
                                            .workdir = "/y",
                                            .timeout_seconds = 7,
                                            .grace_seconds = 8}});
  CHECK(start.key == "k");
  REQUIRE(start.spec.steps.size() == 2);
  CHECK(start.spec.steps[0].name == "one");
  CHECK(start.spec.steps[0].script == "true");
  CHECK(start.spec.steps[0].workdir == "/x");
  CHECK(start.spec.script == "run");
  CHECK(start.spec.env == std::map<std::string, std::string>{{"E", "v"}});
  CHECK(start.spec.workdir == "/y");
  CHECK(start.spec.timeout_seconds == 7);
  CHECK(start.spec.grace_seconds == 8);

  const auto log = round_trip(
      JobLogOperation{.query = {.offset = 1ULL << 40U, .follow = true, .acknowledge = true}});
  CHECK(log.query.offset == 1ULL << 40U);
  CHECK(log.query.follow);
  CHECK(log.query.acknowledge);
  CHECK(round_trip(JobStopOperation{.grace_seconds = 5}).grace_seconds == 5);
  round_trip(JobStatusOperation{});
  round_trip(ShutdownOperation{});
  const WallTime now{std::chrono::nanoseconds(1'700'000'000'123'456'789)};
  CHECK(round_trip(ClockOperation{.now = now}).now == now);
}

TEST_CASE("a text that is not UTF-8 is refused before it is sent") {
  const auto text = operation_text(ExecOperation{.command = {.argv = {"\xFF"}}});
  REQUIRE_FALSE(text);
  CHECK(text.error().code == ErrorCode::invalid_argument);
}

TEST_CASE("an operation that cannot be is an error that names the field") {
  CHECK(parse_operation(R"({"op":"exec","argv":[]})").error().message ==
        "argv: must name a command");
  CHECK(parse_operation(R"({"op":"upload","path":"/a","mode":65536})").error().message ==
        "mode: is not a file mode");
  CHECK(parse_operation(R"({"op":"job_start","steps":[1]})").error().message ==
        "steps[0]: must be an object");
  CHECK(parse_operation(R"({"op":"job_log","offset":-1})").error().message ==
        "offset: must not be negative");
  CHECK(parse_operation(R"({"op":"clock","now":"today"})").error().message == "now: is not a time");
  CHECK(parse_operation(R"({"op":"dance"})").error().message ==
        "op: \"dance\" is not known to this guest's agent");
  CHECK_FALSE(parse_operation("[]"));
  CHECK_FALSE(parse_operation("{"));
}

TEST_CASE("a hello carries the job, and can do without one") {
  GuestHello hello{.protocol = 1,
                   .version = "1.2",
                   .build = "ab",
                   .boot_id = "id",
                   .hostname = "h\xFF",
                   .uptime = std::chrono::milliseconds(2500)};
  const auto bare = parse_hello(hello_text(hello));
  REQUIRE(bare);
  CHECK_FALSE(bare->job);
  CHECK(bare->hostname == "h\xEF\xBF\xBD");
  CHECK(bare->uptime == std::chrono::milliseconds(2500));
  hello.job = GuestJob{.key = "k",
                       .boot_id = "id",
                       .status = {.state = JobState::exited, .exit_code = 3, .reason = "exited"}};
  const auto full = parse_hello(hello_text(hello));
  REQUIRE(full);
  REQUIRE(full->job);
  CHECK(full->job->key == "k");
  CHECK(full->job->status.state == JobState::exited);
  CHECK(full->job->status.exit_code == 3);
}

TEST_CASE("errors keep code and message, and fit a frame however long they are") {
  const Error back = parse_error_text(error_text({ErrorCode::conflict, "no \"way\""}));
  CHECK(back.code == ErrorCode::conflict);
  CHECK(back.message == "no \"way\"");
  CHECK(error_text({ErrorCode::internal, std::string(1U << 20U, '\x01')}).size() <
        most_frame_payload);
  CHECK(parse_error_text("nonsense").code == ErrorCode::internal);
  CHECK(parse_error_text(R"({"code":"new","message":"m"})").message == "m");
}

TEST_CASE("a resize is two numbers, clamped, or nothing") {
  const auto size = parse_resize(encode_resize({.rows = 40, .cols = 100000}));
  REQUIRE(size);
  CHECK(size->rows == 40);
  CHECK(size->cols == 65535);
  CHECK_FALSE(parse_resize(encode_resize({.rows = 0, .cols = 5})));
  CHECK_FALSE(parse_resize(encode_resize({.rows = 5, .cols = -1})));
  CHECK_FALSE(parse_resize("{}"));
  CHECK_FALSE(parse_resize("x"));
  CHECK_FALSE(parse_resize(R"({"rows":"1","cols":2})"));
}

}  // namespace
}  // namespace fuse
