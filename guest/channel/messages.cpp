#include "guest/channel/messages.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/text.h"
#include "guest/channel/json_text.h"

namespace fuse {

using channel_detail::ascii_json;
using channel_detail::int32_of;
using channel_detail::text_of;
using nlohmann::json;
using StringMap = std::map<std::string, std::string>;
using Strings = std::vector<std::string>;

namespace {

// Writing: one overload an operation, each with the name that reading knows.

json json_of(const ExecOperation& exec) {
  const GuestExec& command = exec.command;
  return {{"op", "exec"},
          {"argv", command.argv},
          {"env", command.env},
          {"workdir", command.workdir},
          {"timeout_ms", command.timeout.count()},
          {"input", exec.has_input}};
}

json json_of(const UploadOperation& upload) {
  return {{"op", "upload"}, {"path", upload.path}, {"mode", upload.mode}};
}

json json_of(const AttachOperation& attach) {
  const AttachRequest& request = attach.request;
  return {{"op", "attach"},     {"argv", request.cmd},  {"env", attach.env},
          {"tty", request.tty}, {"rows", request.rows}, {"cols", request.cols}};
}

json json_of(const BeginOperation& /*begin*/) {
  return {{"op", "begin"}};
}

json json_of(const JobStartOperation& start) {
  json steps = json::array();
  for (const BuildStep& step : start.spec.steps) {
    steps.push_back({{"name", step.name}, {"script", step.script}, {"workdir", step.workdir}});
  }
  return {{"op", "job_start"},
          {"key", start.key},
          {"steps", std::move(steps)},
          {"script", start.spec.script},
          {"env", start.spec.env},
          {"workdir", start.spec.workdir},
          {"timeout_seconds", start.spec.timeout_seconds},
          {"grace_seconds", start.spec.grace_seconds}};
}

json json_of(const JobStatusOperation& /*status*/) {
  return {{"op", "job_status"}};
}

json json_of(const JobLogOperation& log) {
  return {{"op", "job_log"},
          {"offset", log.query.offset},
          {"follow", log.query.follow},
          {"acknowledge", log.query.acknowledge}};
}

json json_of(const JobStopOperation& stop) {
  return {{"op", "job_stop"}, {"grace_seconds", stop.grace_seconds}};
}

json json_of(const ClockOperation& clock) {
  return {{"op", "clock"}, {"now", to_rfc3339(clock.now)}};
}

json json_of(const ShutdownOperation& /*shutdown*/) {
  return {{"op", "shutdown"}};
}

// Reading.

ExecOperation read_exec(JsonReader& reader) {
  ExecOperation exec;
  exec.command.argv = reader.texts("argv").value_or(Strings());
  exec.command.env = reader.text_map("env").value_or(StringMap());
  exec.command.workdir = text_of(reader, "workdir");
  exec.command.timeout = std::chrono::milliseconds(reader.integer("timeout_ms").value_or(0));
  exec.has_input = reader.flag("input").value_or(false);
  if (exec.command.argv.empty()) reader.complain("argv", "must name a command");
  return exec;
}

UploadOperation read_upload(JsonReader& reader) {
  UploadOperation upload{.path = text_of(reader, "path")};
  const std::int64_t mode = reader.integer("mode").value_or(0);
  if (mode < 0 || mode > 07777) reader.complain("mode", "is not a file mode");
  upload.mode = static_cast<std::uint32_t>(mode & 07777);
  return upload;
}

AttachOperation read_attach(JsonReader& reader) {
  AttachOperation attach;
  attach.request.cmd = reader.texts("argv").value_or(Strings());
  attach.env = reader.text_map("env").value_or(StringMap());
  attach.request.tty = reader.flag("tty").value_or(true);
  attach.request.rows = int32_of(reader, "rows");
  attach.request.cols = int32_of(reader, "cols");
  return attach;
}

JobStartOperation read_job_start(JsonReader& reader) {
  JobStartOperation start{.key = text_of(reader, "key")};
  JobSpec& spec = start.spec;
  for (const json* element : reader.elements("steps")) {
    JsonReader step(*element, cat(reader.path_of("steps"), "[", spec.steps.size(), "]"));
    spec.steps.push_back({.name = text_of(step, "name"),
                          .script = text_of(step, "script"),
                          .workdir = text_of(step, "workdir")});
    if (auto done = step.finish(); !done) reader.complain_with(done.error());
  }
  spec.script = text_of(reader, "script");
  spec.env = reader.text_map("env").value_or(StringMap());
  spec.workdir = text_of(reader, "workdir");
  spec.timeout_seconds = reader.integer("timeout_seconds").value_or(0);
  spec.grace_seconds = reader.integer("grace_seconds").value_or(0);
  return start;
}

JobLogOperation read_job_log(JsonReader& reader) {
  JobLogOperation log;
  const std::int64_t offset = reader.integer("offset").value_or(0);
  if (offset < 0) reader.complain("offset", "must not be negative");
  log.query.offset = static_cast<std::uint64_t>(std::max<std::int64_t>(offset, 0));
  log.query.follow = reader.flag("follow").value_or(false);
  log.query.acknowledge = reader.flag("acknowledge").value_or(false);
  return log;
}

ClockOperation read_clock(JsonReader& reader) {
  const auto now = parse_rfc3339(text_of(reader, "now"));
  if (!now) reader.complain("now", "is not a time");
  return {.now = now.value_or(WallTime())};
}

Operation read_operation(JsonReader& reader) {
  const std::string name = text_of(reader, "op");
  if (name == "exec") return read_exec(reader);
  if (name == "upload") return read_upload(reader);
  if (name == "attach") return read_attach(reader);
  if (name == "begin") return BeginOperation{};
  if (name == "job_start") return read_job_start(reader);
  if (name == "job_status") return JobStatusOperation{};
  if (name == "job_log") return read_job_log(reader);
  if (name == "job_stop") {
    return JobStopOperation{.grace_seconds = reader.integer("grace_seconds").value_or(0)};
  }
  if (name == "clock") return read_clock(reader);
  if (name == "shutdown") return ShutdownOperation{};
  reader.complain("op", cat("\"", name, "\" is not known to this guest's agent"));
  return JobStatusOperation{};
}

}  // namespace

Result<std::string> operation_text(const Operation& operation) {
  return ascii_json(std::visit([](const auto& known) { return json_of(known); }, operation));
}

Result<Operation> parse_operation(std::string_view text) {
  const auto value = parse_json(text);
  if (!value) return value.error();
  JsonReader reader(*value, "");
  Operation operation = read_operation(reader);
  if (auto done = reader.finish(); !done) return done.error();
  return operation;
}

}  // namespace fuse
