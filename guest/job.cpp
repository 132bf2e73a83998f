#include "guest/job.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/posix_host.h"
#include "base/text.h"

namespace fuse {

namespace {

constexpr std::size_t read_size = 64U << 10U;
constexpr std::chrono::seconds default_grace(30);
constexpr std::chrono::milliseconds look_at_group(10);
// Killed processes go at once, but for those that wait for a device for good.
constexpr int most_looks_after_kill = 1000;
constexpr std::chrono::milliseconds disk_retry(200);

std::string now_text() {
  return to_rfc3339(SystemClock().wall());
}

fs::path record_file(const JobPlaces& places) {
  return places.state / "job.json";
}
fs::path log_dir(const JobPlaces& places) {
  return places.state / "log";
}

Result<void> check(const JobSpec& spec) {
  const auto refuse = [](std::string what) {
    return Error{ErrorCode::invalid_argument, std::move(what)};
  };
  if (spec.steps.empty() && spec.script.empty()) return refuse("a job needs steps or a script");
  if (spec.timeout_seconds < 0) return refuse("timeout_seconds must not be negative");
  if (spec.grace_seconds < 0) return refuse("grace_seconds must not be negative");
  for (const auto& [name, value] : spec.env) {
    if (name.empty() || name.find('=') != std::string::npos ||
        cat(name, value).find('\0') != std::string::npos) {
      return refuse(cat("\"", name, "\" cannot be a variable of an environment"));
    }
  }
  return {};
}

}  // namespace

Job::Job(EventLoop& loop, Children& children, JobPlaces places, std::string boot_id)
    : loop_(loop), children_(children), places_(std::move(places)), boot_id_(std::move(boot_id)) {}

void Job::load() {
  const auto text = PosixHost().read_file(record_file(places_));
  if (!text) return;
  auto found = parse_guest_job(*text);
  if (!found) return;
  record_ = *std::move(found);
  if (auto spool = Spool::open(log_dir(places_), {})) spool_ = *std::move(spool);
  JobStatus& status = record_->status;
  if (is_over(status)) return;
  // Making the group anew kills what an earlier one holds.
  const JobGroup leftover(places_.cgroup);
  status.state = JobState::lost;
  status.reason = "lost";
  status.finished_at = now_text();
  if (spool_) status.log_bytes = spool_->end();
  save();
}

Result<void> Job::start(const std::string& key, JobSpec spec) {
  if (record_) {
    if (!key.empty() && record_->key == key) return {};
    return Error{ErrorCode::conflict, "this guest has had its job already"};
  }
  if (auto checked = check(spec); !checked) return checked;
  spec_ = std::move(spec);
  if (auto prepared = prepare(key); !prepared) {
    pipe_watch_.reset();
    record_.reset();
    spool_.reset();
    spec_ = {};
    return prepared;
  }
  group_ = std::make_unique<JobGroup>(places_.cgroup);
  start_timeout();
  start_next();
  return {};
}

// Everything that may fail, the record on disk last.
Result<void> Job::prepare(const std::string& key) {
  PosixHost host;
  for (const fs::path& dir : {places_.state, places_.run}) {
    if (auto made = host.make_dirs(dir, 0700); !made) return made;
  }
  const std::uint64_t most =
      places_.most_log_bytes != 0 ? places_.most_log_bytes : spool_limit(places_.state);
  auto spool = Spool::create(log_dir(places_), {.most_unacknowledged = most});
  if (!spool) return spool.error();
  spool_ = *std::move(spool);
  if (auto opened = open_pipe(); !opened) return opened;
  record_ = GuestJob{.key = key, .boot_id = boot_id_};
  JobStatus& status = record_->status;
  status.state = JobState::running;
  status.phase = spec_.steps.empty() ? JobPhase::run : JobPhase::build;
  status.steps = static_cast<std::int32_t>(spec_.steps.size());
  status.started_at = now_text();
  return host.replace_file(record_file(places_), cat(guest_job_text(*record_), "\n"), 0600);
}

Result<void> Job::open_pipe() {
  std::array<int, 2> fds{-1, -1};
  if (::pipe2(fds.data(), O_CLOEXEC) < 0) return errno_error("create a pipe", errno);
  pipe_read_ = Fd(fds[0]);
  pipe_write_ = Fd(fds[1]);
  // Ours alone: the job's end blocks when the spool is full.
  ::fcntl(pipe_read_.get(), F_SETFL, O_NONBLOCK);
  auto watch = loop_.watch(pipe_read_.get(), EPOLLIN, [this](std::uint32_t) { on_pipe(); });
  if (!watch) return watch.error();
  pipe_watch_ = *std::move(watch);
  return {};
}

void Job::start_timeout() {
  if (spec_.timeout_seconds == 0) return;
  timeout_ = loop_.after(std::chrono::seconds(spec_.timeout_seconds),
                         [this] { request_end("timeout", std::chrono::seconds(0)); });
}

void Job::start_next() {
  JobStatus& status = record_->status;
  const std::size_t index = next_++;
  Result<void> started;
  if (index < spec_.steps.size()) {
    const BuildStep& step = spec_.steps[index];
    status.step = static_cast<std::int32_t>(index + 1);
    status.step_name = step.name;
    started = start_script(step.script, step.workdir);
  } else if (index == spec_.steps.size() && !spec_.script.empty()) {
    status.phase = JobPhase::run;
    started = start_script(spec_.script, spec_.workdir);
  } else {
    status.phase = JobPhase::done;
    return end({});
  }
  notify();
  if (started) return;
  const auto failure = Children::failure_of({}, started.error());
  spool_->append(cat(failure.message, "\n"));
  end({.code = failure.code, .signal = 0});
}

Result<void> Job::start_script(const std::string& script, const std::string& workdir) {
  PosixHost host;
  const fs::path file = places_.run / (next_ <= spec_.steps.size() ? cat("step-", next_, ".sh")
                                                                   : std::string("run.sh"));
  if (auto wrote = host.replace_file(file, script, 0700); !wrote) return wrote;
  const fs::path dir = places_.root / fs::path(workdir.empty() ? "/" : workdir).relative_path();
  if (auto made = host.make_dirs(dir, 0755); !made) return made;
  const auto pid = children_.start({.argv = {"/bin/sh", file},
                                    .environment = guest_environment(spec_.env),
                                    .directory = dir,
                                    .stdout_fd = pipe_write_.get(),
                                    .stderr_fd = pipe_write_.get(),
                                    .cgroup_fd = group_->join_fd()},
                                   [this](ExitStatus status) { on_exit(status); });
  if (!pid) return pid.error();
  group_->add(*pid);
  return {};
}

void Job::on_exit(ExitStatus status) {
  if (status.success() && end_reason_.empty()) return start_next();
  end(status);
}

Result<void> Job::stop(std::chrono::seconds grace) {
  if (!record_) return Error{ErrorCode::not_found, "this guest has had no job"};
  if (!is_over(record_->status)) request_end("stopped", grace);
  return {};
}

void Job::kill() {
  if (!record_ || is_over(record_->status)) return;
  if (end_reason_.empty() && !main_status_) end_reason_ = "stopped";
  kill_group();
}

// A second request only shortens the grace of the first.
void Job::request_end(std::string reason, std::chrono::seconds grace) {
  if (main_status_ && end_reason_.empty()) return;
  if (end_reason_.empty()) end_reason_ = std::move(reason);
  timeout_.reset();
  if (grace.count() <= 0) grace = std::chrono::seconds(spec_.grace_seconds);
  if (grace.count() <= 0) grace = default_grace;
  group_->signal(SIGTERM);
  // One that was stopped can act on it only when it goes on.
  group_->signal(SIGCONT);
  kill_timer_ = loop_.after(grace, [this] { kill_group(); });
}

// The script that decides is over.  One that we asked to end leaves the others
// their grace; else what it left behind is killed.
void Job::end(ExitStatus status) {
  main_status_ = status;
  timeout_.reset();
  JobStatus& job = record_->status;
  if (job.phase == JobPhase::run) job.phase = JobPhase::done;
  job.exit_code = status.shell_code();
  if (status.signal != 0) job.signal = status.signal;
  job.reason = end_reason_;
  if (job.reason.empty()) {
    job.reason = !status.success() && group_->oom_kills() > 0 ? "oom" : "exited";
    kill_group();
  }
  await_group();
}

void Job::kill_group() {
  killed_ = true;
  group_->kill();
}

void Job::await_group() {
  if (group_->empty() || (killed_ && ++group_looks_ > most_looks_after_kill)) return finish();
  group_timer_ = loop_.after(look_at_group, [this] { await_group(); });
}

void Job::finish() {
  kill_timer_.reset();
  pipe_watch_.reset();
  pipe_write_.reset();
  drain_pipe();
  pipe_read_.reset();
  group_.reset();
  spec_ = {};
  (void)PosixHost().remove_all(places_.run);
  JobStatus& status = record_->status;
  status.state = JobState::exited;
  status.finished_at = now_text();
  status.log_bytes = spool_->end();
  save();
  notify();
}

// All writers are gone, or such as escaped from a process group: what is there now
// is all there is.
void Job::drain_pipe() {
  int waiting = 0;
  if (::ioctl(pipe_read_.get(), FIONREAD, &waiting) < 0) return;
  std::string rest(static_cast<std::size_t>(std::max(waiting, 0)), '\0');
  std::size_t have = 0;
  while (have < rest.size()) {
    const ssize_t got = ::read(pipe_read_.get(), rest.data() + have, rest.size() - have);
    if (got <= 0 && errno != EINTR) break;
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  spool_->append(std::string_view(rest).substr(0, have));
  read_when_room();
}

void Job::on_pipe() {
  std::array<char, read_size> buffer;  // NOLINT(*-member-init): written by read
  const ssize_t got = ::read(pipe_read_.get(), buffer.data(), buffer.size());
  if (got <= 0) return;
  spool_->append({buffer.data(), static_cast<std::size_t>(got)});
  read_when_room();
  notify();
}

// The job is read from while there is room; a full disk is tried again.
void Job::read_when_room() {
  pipe_watch_.set_events(spool_->has_room() ? EPOLLIN : 0U);
  if (!spool_->is_behind() || flush_timer_.active()) return;
  flush_timer_ = loop_.after(disk_retry, [this] {
    flush_timer_.reset();
    spool_->flush();
    read_when_room();
  });
}

void Job::acknowledge(std::uint64_t offset) {
  spool_->acknowledge(offset);
  read_when_room();
}

void Job::save() {
  const std::string text = cat(guest_job_text(*record_), "\n");
  if (PosixHost().replace_file(record_file(places_), text, 0600)) return save_timer_.reset();
  save_timer_ = loop_.after(disk_retry, [this] { save(); });
}

std::optional<GuestJob> Job::status() const {
  auto out = record_;
  if (out && spool_ && !is_over(out->status)) out->status.log_bytes = spool_->end();
  return out;
}

bool Job::has_ended() const {
  return !record_ || is_over(record_->status);
}

int Job::listen(std::function<void()> listener) {
  listeners_[next_listener_] = std::move(listener);
  return next_listener_++;
}

void Job::notify() {
  // A listener may go, or make another go, while it is told.
  std::vector<int> ids;
  for (const auto& [id, listener] : listeners_) ids.push_back(id);
  for (const int id : ids) {
    const auto found = listeners_.find(id);
    if (found == listeners_.end()) continue;
    const auto listener = found->second;
    listener();
  }
}

}  // namespace fuse
