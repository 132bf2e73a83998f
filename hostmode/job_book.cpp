#include "hostmode/job_book.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_reader.h"
#include "base/text.h"
#include "hostmode/vm_paths.h"
#include "orchestrator/api/json.h"

namespace fuse {

namespace {

constexpr std::int64_t job_schema = 1;

std::string to_text(const JobStatus& status) {
  const nlohmann::ordered_json out = {{"schema", job_schema}, {"job", to_json(status)}};
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<JobStatus> parse_job(std::string_view text) {
  const auto parsed = parse_json(text);
  if (!parsed) return parsed.error();
  JsonReader fields(*parsed, "");
  const auto schema = fields.integer("schema");
  const nlohmann::json* job = fields.object("job");
  if (auto done = fields.finish(); !done) return done.error();
  if (schema != job_schema || job == nullptr) {
    return Error{ErrorCode::internal, cat("it is not a job record of schema ", job_schema)};
  }
  return parse_job_status(*job);
}

std::string to_line(const JobStatus& status) {
  return to_json(status).dump();
}

}  // namespace

Result<std::optional<JobStatus>> read_job(Host& host, const fs::path& dir) {
  const auto text = host.read_file(dir / vm_file::job);
  if (!text) {
    if (text.error().code == ErrorCode::not_found) return std::optional<JobStatus>();
    return text.error();
  }
  auto status = parse_job(*text);
  if (!status) return in_context((dir / vm_file::job).native(), status.error());
  return std::optional(std::move(status).value());
}

Result<void> write_job(Host& host, const fs::path& dir, const JobStatus& status) {
  return host.replace_file(dir / vm_file::job, to_text(status), 0600);
}

JobStatus lost_job(const JobStatus& last_known) {
  JobStatus status = last_known;
  status.state = JobState::lost;
  status.reason = "lost";
  status.exit_code.reset();
  status.signal.reset();
  return status;
}

Result<void> lose_job(Host& host, const fs::path& dir) {
  const auto job = read_job(host, dir);
  if (!job) return job.error();
  if (!*job || is_over(**job)) return {};
  return write_job(host, dir, lost_job(**job));
}

Result<std::shared_ptr<JobBook>> JobBook::open(Host& host, const fs::path& dir) {
  auto status = read_job(host, dir);
  if (!status) return status.error();
  auto log = JobLog::open(dir / vm_file::job_log);
  if (!log) return log.error();
  return std::shared_ptr<JobBook>(
      new JobBook(host, dir, std::move(status).value(), std::move(log).value()));
}

Result<void> JobBook::begin() {
  const std::scoped_lock lock(mutex_);
  if (status_) return Error{ErrorCode::conflict, "the vm has had its job"};
  const JobStatus pending;
  if (auto written = write_job(host_, dir_, pending); !written) return written;
  status_ = pending;
  return {};
}

Result<void> JobBook::forget() {
  const std::scoped_lock lock(mutex_);
  status_.reset();
  return host_.remove_all(dir_ / vm_file::job);
}

Result<void> JobBook::update(const JobStatus& status) {
  const std::scoped_lock lock(mutex_);
  if (status_ && is_over(*status_)) return {};
  // The growing log alone is no reason to write.
  JobStatus before = status_.value_or(JobStatus{});
  before.log_bytes = status.log_bytes;
  const bool changed = !status_ || to_line(before) != to_line(status);
  if (changed) {
    if (auto written = write_job(host_, dir_, status); !written) return written;
  }
  status_ = status;
  return {};
}

Result<void> JobBook::close() {
  const std::scoped_lock lock(mutex_);
  if (!status_ || is_over(*status_)) return {};
  status_ = lost_job(*status_);
  return write_job(host_, dir_, *status_);
}

std::optional<JobStatus> JobBook::status() const {
  const std::scoped_lock lock(mutex_);
  return status_;
}

}  // namespace fuse
