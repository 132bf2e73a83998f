#include "remote/exec_jobs.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace fuse {

namespace {

using std::chrono::milliseconds;

constexpr std::int64_t exec_timeout_ms = 30'000;
constexpr std::uint64_t log_piece = 256U << 10U;
constexpr milliseconds poll_pause{1000};
constexpr milliseconds stop_check{100};
constexpr std::size_t most_kept = 1024;

Error no_job(const std::string& vm_id) {
  return {ErrorCode::not_found, cat("vm ", vm_id, " has had no job")};
}

Error failed(std::string_view what, const ExecResult& result) {
  const std::string said = valid_utf8(trim(result.err));
  return {ErrorCode::internal, cat(what, " in the guest exited with ", result.exit_code,
                                   said.empty() ? "" : ": ", said)};
}

}  // namespace

Result<ExecResult> ExecJobs::run(const std::string& vm_id, const std::string& script) {
  return guests_.exec(vm_id, {.cmd = {"sh", "-c", script}, .timeout_ms = exec_timeout_ms});
}

Result<void> ExecJobs::start_job(const std::string& vm_id, const JobSpec& job) {
  // What an earlier start uploaded must not change under a job that runs.
  const auto had = ask(vm_id);
  if (had) return Error{ErrorCode::conflict, "the vm has had its job"};
  if (had.error().code != ErrorCode::not_found) return had.error();
  for (const UploadFile& file : script_.files(job)) {
    if (auto done = guests_.upload(vm_id, file); !done) return done;
  }
  const auto started = run(vm_id, script_.start());
  if (!started) return started.error();
  if (started->exit_code == ExecJobScript::had_one) {
    return Error{ErrorCode::conflict, "the vm has had its job"};
  }
  if (started->exit_code != 0) return failed("the start of the job", *started);
  return {};
}

Result<JobStatus> ExecJobs::ask(const std::string& vm_id) {
  const auto said = run(vm_id, script_.status());
  if (!said) return said.error();
  if (said->exit_code == ExecJobScript::no_job) return no_job(vm_id);
  if (said->exit_code != 0) return failed("the look at the job", *said);
  return parse_exec_job(said->out);
}

Result<JobStatus> ExecJobs::job(const std::string& vm_id) {
  auto status = ask(vm_id);
  if (status || status.error().code != ErrorCode::not_found) return status;
  const std::scoped_lock lock(mutex_);
  const auto kept = kept_.find(vm_id);
  if (kept == kept_.end()) return status;
  return kept->second;
}

void ExecJobs::keep_result(const std::string& vm_id) {
  const auto status = ask(vm_id);
  if (!status) return;
  const std::scoped_lock lock(mutex_);
  // ULIDs sort by age, so the first is the oldest.
  if (kept_.size() >= most_kept) kept_.erase(kept_.begin());
  kept_[vm_id] = *status;
}

Result<void> ExecJobs::stop_job(const std::string& vm_id) {
  const auto stopped = run(vm_id, script_.stop());
  if (!stopped) return stopped.error();
  if (stopped->exit_code == ExecJobScript::no_job) return no_job(vm_id);
  if (stopped->exit_code != 0) return failed("the stop of the job", *stopped);
  return {};
}

Result<std::uint64_t> ExecJobs::begin_of(const std::string& vm_id, const LogQuery& query) {
  if (!query.tail) return query.offset;
  const auto said = run(vm_id, script_.tail_offset(*query.tail));
  if (!said) return said.error();
  const auto offset = parse_int(trim(said->out));
  if (said->exit_code != 0 || !offset || *offset < 0) return failed("a look at the log", *said);
  return static_cast<std::uint64_t>(*offset);
}

Result<ExecJobs::Copied> ExecJobs::copy(const std::string& vm_id, LogRange& range,
                                        const ByteSink& sink) {
  for (;;) {
    const auto piece = run(vm_id, script_.read_log(range.end, log_piece));
    if (!piece) return piece.error();
    if (piece->exit_code != 0) return failed("reading the log", *piece);
    if (piece->out.empty()) return Copied::all;
    range.end += piece->out.size();
    if (!sink(piece->out)) return Copied::refused;
  }
}

Result<LogRange> ExecJobs::logs(const std::string& vm_id, const LogQuery& query,
                                const ByteSink& sink, std::stop_token stop) {
  auto status = ask(vm_id);
  if (!status && status.error().message == "vm not found") {
    return Error{ErrorCode::not_found,
                 "no live log on this host: its agent keeps none, and the vm is gone"};
  }
  if (!status) return status.error();
  const auto begin = begin_of(vm_id, query);
  if (!begin) return begin.error();
  LogRange range{*begin, *begin};
  if (!query.follow && !query.tail) range.begin = range.end = std::min(*begin, status->log_bytes);
  while (!stop.stop_requested()) {
    // A job that was over before the copy has nothing to add after it.
    const bool over = is_over(*status);
    const auto copied = copy(vm_id, range, sink);
    if (!copied) return copied.error();
    if (*copied == Copied::refused || !query.follow || over) return range;
    for (milliseconds slept{0}; slept < poll_pause && !stop.stop_requested(); slept += stop_check) {
      clock_.sleep(stop_check);
    }
    status = ask(vm_id);
    if (!status) return status.error();
  }
  return range;
}

}  // namespace fuse
