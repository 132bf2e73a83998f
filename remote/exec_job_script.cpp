#include "remote/exec_job_script.h"

#include <map>

#include "base/text.h"

namespace fuse {

namespace {

constexpr std::int64_t usual_grace_seconds = 30;
constexpr std::uint32_t private_script = 0600;

std::string step_file(std::size_t index) {
  return cat("step-", index, ".sh");
}

std::string directory_of(const std::string& workdir) {
  return shell_quote(workdir.empty() ? "/" : workdir);
}

bool is_variable(std::string_view name) {
  constexpr std::string_view others =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  return !name.empty() && name.find_first_not_of(others) == std::string_view::npos &&
         (name.front() < '0' || name.front() > '9');
}

// One line: a step's name may hold anything.
std::string in_one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text;
}

std::optional<std::int32_t> number_in(const std::map<std::string, std::string>& fields,
                                      const std::string& name) {
  const auto found = fields.find(name);
  const auto value = found == fields.end() ? std::nullopt : parse_int(trim(found->second));
  if (!value || *value < 0 || *value > 1'000'000) return std::nullopt;
  return static_cast<std::int32_t>(*value);
}

std::string text_in(const std::map<std::string, std::string>& fields, const std::string& name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string() : found->second;
}

// How a job that is over came to its end.
void note_end(JobStatus& status, const std::map<std::string, std::string>& fields) {
  const auto code = number_in(fields, "exit_code");
  status.state = code ? JobState::exited : JobState::lost;
  status.exit_code = code;
  status.reason = code ? "exited" : "lost";
  if (!code) return;
  constexpr std::int32_t signalled = 128;
  if (*code > signalled && *code < 2 * signalled) status.signal = *code - signalled;
  if (fields.contains("stopped")) status.reason = "stopped";
  if (fields.contains("timed_out")) status.reason = "timeout";
  if (status.phase == JobPhase::run || *code == 0) status.phase = JobPhase::done;
}

}  // namespace

std::string ExecJobScript::file(std::string_view name) const {
  return shell_quote(cat(folder_, "/", name));
}

std::vector<UploadFile> ExecJobScript::files(const JobSpec& job) const {
  std::vector<UploadFile> out;
  const auto add = [&](const std::string& name, std::string text) {
    out.push_back(
        {.path = cat(folder_, "/", name), .bytes = std::move(text), .mode = private_script});
  };
  for (std::size_t i = 0; i < job.steps.size(); ++i) add(step_file(i + 1), job.steps[i].script);
  if (!job.script.empty()) add("run.sh", job.script);
  add("main.sh", main_script(job));
  add("watch.sh", watch_script(job));
  return out;
}

std::string ExecJobScript::main_script(const JobSpec& job) const {
  std::string out =
      "export HOME=/root USER=root LOGNAME=root TZ=UTC PYTHONUNBUFFERED=1\n"
      "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n";
  for (const auto& [name, value] : job.env) {
    if (is_variable(name)) out += cat("export ", name, "=", shell_quote(value), "\n");
  }
  for (std::size_t i = 0; i < job.steps.size(); ++i) {
    const BuildStep& step = job.steps[i];
    out += cat("echo ", i + 1, " >", file("step"), "\n");
    out +=
        cat("printf '%s\\n' ", shell_quote(in_one_line(step.name)), " >", file("step_name"), "\n");
    out += cat("(cd ", directory_of(step.workdir), " && exec sh ", file(step_file(i + 1)),
               ") || exit\n");
  }
  if (job.script.empty()) return out;
  out += cat("echo run >", file("phase"), "\n");
  out += cat("cd ", directory_of(job.workdir), " && exec sh ", file("run.sh"), "\n");
  return out;
}

std::string ExecJobScript::watch_script(const JobSpec& job) const {
  const std::string now = "date -u +%Y-%m-%dT%H:%M:%SZ";
  const std::int64_t grace = job.grace_seconds > 0 ? job.grace_seconds : usual_grace_seconds;
  std::string out = cat("echo $$ >", file("watcher"), "\n", now, " >", file("started_at"), "\n");
  out += cat("echo ", job.steps.size(), " >", file("steps"), "\n");
  out += cat("echo ", job.steps.empty() ? "run" : "build", " >", file("phase"), "\n");
  out += cat("echo ", grace, " >", file("grace"), "\n");
  out += cat("setsid sh ", file("main.sh"), " >>", file("log"), " 2>&1 &\njob=$!\n");
  out += cat("echo $job >", file("pid"), "\n");
  if (job.timeout_seconds > 0) {
    const std::string limit = cat("sleep ", job.timeout_seconds, "; echo >", file("timed_out"),
                                  "; kill -TERM -$1; sleep ", grace, "; kill -KILL -$1");
    out += cat("setsid sh -c ", shell_quote(limit), " limit $job &\nlimit=$!\n");
  }
  out += "wait $job\ncode=$?\n";
  if (job.timeout_seconds > 0) out += "kill -KILL -$limit\n";
  out += cat(now, " >", file("finished_at"), "\n");
  // By rename: who reads it reads all of it.
  out += cat("echo $code >", file("exit_code.new"), "\nmv ", file("exit_code.new"), " ",
             file("exit_code"), "\n");
  return out;
}

std::string ExecJobScript::start() const {
  return cat("mkdir ", file("begun"), " 2>/dev/null || exit ", had_one, "\n: >", file("log"),
             "\nsetsid sh ", file("watch.sh"), " </dev/null >/dev/null 2>&1 &\n");
}

std::string ExecJobScript::status() const {
  return cat("cd ", shell_quote(folder_), " 2>/dev/null && [ -d begun ] || exit ", no_job, "\n",
             // First who lives, then what is written: a job that ends in between is not lost.
             "if [ -s watcher ] && kill -0 \"$(cat watcher)\" 2>/dev/null; then echo alive=1; fi\n",
             // The code is written last, so it is read first: with it all else is final.
             "for f in exit_code started_at finished_at phase step steps step_name timed_out "
             "stopped; do\n"
             "  if [ -e $f ]; then printf '%s=%s\\n' $f \"$(cat $f)\"; fi\n"
             "done\n"
             "printf 'log_bytes=%s\\n' \"$(wc -c <log)\"\n");
}

std::string ExecJobScript::stop() const {
  return cat("cd ", shell_quote(folder_), " 2>/dev/null && [ -d begun ] || exit ", no_job, "\n",
             "[ -e exit_code ] && exit 0\n"
             "[ -s pid ] || exit 0\n"
             "job=$(cat pid)\n"
             "echo >stopped\n"
             "kill -TERM -$job\n"
             "setsid sh -c 'sleep \"$2\"; [ -e \"$3\" ] || kill -KILL -\"$1\"' kill $job "
             "\"$(cat grace)\" ",
             file("exit_code"), " </dev/null >/dev/null 2>&1 &\n");
}

std::string ExecJobScript::read_log(std::uint64_t offset, std::uint64_t most) const {
  return cat("tail -c +", offset + 1, " ", file("log"), " | head -c ", most);
}

std::string ExecJobScript::tail_offset(std::uint64_t lines) const {
  return cat("size=$(wc -c <", file("log"), ")\nrest=$(head -c $size ", file("log"), " | tail -n ",
             lines, " | wc -c)\necho $((size - rest))\n");
}

Result<JobStatus> parse_exec_job(std::string_view text) {
  std::map<std::string, std::string> fields;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) fields[line.substr(0, equals)] = line.substr(equals + 1);
  }
  const auto size = parse_int(trim(text_in(fields, "log_bytes")));
  if (!size || *size < 0) {
    return Error{ErrorCode::internal, "the state of the job in the guest is not understood"};
  }
  JobStatus status{.started_at = text_in(fields, "started_at"),
                   .finished_at = text_in(fields, "finished_at"),
                   .log_bytes = static_cast<std::uint64_t>(*size)};
  status.step = number_in(fields, "step").value_or(0);
  status.steps = number_in(fields, "steps").value_or(0);
  if (text_in(fields, "phase") == "run") status.phase = JobPhase::run;
  if (status.phase == JobPhase::build) status.step_name = text_in(fields, "step_name");
  const bool alive = fields.contains("alive") && !fields.contains("exit_code");
  if (alive) status.state = JobState::running;
  if (!alive && !status.started_at.empty()) note_end(status, fields);
  return status;
}

}  // namespace fuse
