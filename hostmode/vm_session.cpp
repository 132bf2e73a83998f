#include "hostmode/vm_session.h"

#include <utility>

#include "base/text.h"
#include "hostmode/deadline.h"
#include "hostmode/vm_paths.h"

namespace fuse {

namespace {

constexpr std::chrono::milliseconds pump_retry = std::chrono::seconds(1);

}  // namespace

Result<std::shared_ptr<VmSession>> VmSession::open(const Context& context, const fs::path& dir,
                                                   std::unique_ptr<GuestClient> first) {
  auto book = JobBook::open(context.host, dir);
  if (!book) return book.error();
  std::shared_ptr<VmSession> session(new VmSession(context, std::move(book).value()));
  VmSession* const self = session.get();
  session->line_ = std::make_unique<GuestLine>(
      dir,
      GuestLine::Context{.clock = context.clock,
                         .log = context.log,
                         .limits = context.limits.line,
                         .on_hello = [self](const GuestHello& hello) { self->heard(hello); }},
      std::move(first));
  session->pump_ = std::jthread([self](std::stop_token stop) { self->pump(std::move(stop)); });
  return session;
}

VmSession::~VmSession() {
  // Not end(): the VM goes on, and with it its job.
  pump_.request_stop();
  line_->close();
}

Result<std::shared_ptr<GuestClient>> VmSession::guest(std::stop_token stop) {
  return line_->client(context_.limits.patience, std::move(stop));
}

void VmSession::wake() {
  const std::scoped_lock lock(mutex_);
  changed_.notify_all();
}

void VmSession::pause(std::chrono::milliseconds time, std::stop_token stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::move(stop), time, [] { return false; });
}

// What a guest says at the beginning of a connection settles what a broken one
// left open.
void VmSession::heard(const GuestHello& hello) {
  const auto known = book_->status();
  Result<void> kept;
  if (hello.job) {
    kept = is_over(hello.job->status) ? Result<void>() : book_->update(hello.job->status);
    if (!known && is_over(hello.job->status)) kept = book_->begin();
  } else if (known && !is_over(*known)) {
    bool starting = false;
    {
      const std::scoped_lock lock(mutex_);
      starting = starting_ > 0;
    }
    const bool never_began = known->state == JobState::pending;
    if (!starting) kept = never_began ? book_->forget() : book_->update(lost_job(*known));
  }
  if (!kept) {
    context_.log.error("cannot write the job's state down", {{"reason", kept.error().message}});
  }
  wake();
}

Result<void> VmSession::start_job(const JobSpec& job) {
  // What a hand-over that was cut off has left is settled by the guest's hello.
  if (const auto client = guest(); !client) return client.error();
  {
    const std::scoped_lock lock(mutex_);
    ++starting_;
  }
  auto started = book_->begin();
  if (started) started = hand_over(job);
  const std::scoped_lock lock(mutex_);
  --starting_;
  changed_.notify_all();
  return started;
}

Result<void> VmSession::hand_over(const JobSpec& job) {
  // One key for all attempts: the guest tells a retry from a second job by it.
  const std::string key = random_hex(16);
  Result<void> started;
  bool may_have_begun = false;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto client = guest();
    started = client ? (*client)->start_job(key, job) : Result<void>(client.error());
    if (started || !client || started.error().code != ErrorCode::unreachable) break;
    may_have_begun = true;
    reconnect();
  }
  if (!started) {
    // Where the answer was lost, the guest's next hello settles it.
    const bool unsure = may_have_begun && started.error().code == ErrorCode::unreachable;
    if (!unsure) (void)book_->forget();
    return started;
  }
  JobStatus running;
  running.state = JobState::running;
  running.steps = static_cast<std::int32_t>(job.steps.size());
  running.phase = job.steps.empty() ? JobPhase::run : JobPhase::build;
  return book_->update(running);
}

std::optional<JobStatus> VmSession::job() {
  auto known = book_->status();
  if (!known || is_over(*known)) return known;
  const auto client = guest();
  if (!client) return known;
  const auto asked = (*client)->job_status();
  if (!asked) {
    if (asked.error().code == ErrorCode::unreachable) reconnect();
    return book_->status();
  }
  if (is_over(asked->status)) {
    // The pump writes the end down after the last of the log: who is told of it
    // should find both.
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, context_.limits.goodbye, [&] { return drained_; });
    return asked->status;
  }
  (void)book_->update(asked->status);
  return asked->status;
}

Result<void> VmSession::stop_job() {
  const auto known = book_->status();
  if (!known) return Error{ErrorCode::not_found, "the vm has no job"};
  if (is_over(*known)) return {};
  const auto client = guest();
  if (!client) return client.error();
  return (*client)->stop_job();
}

bool VmSession::await_job(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop, [&] {
    const auto status = book_->status();
    return status && starting_ == 0;
  });
  return !stop.stop_requested();
}

void VmSession::pump(std::stop_token stop) {
  while (await_job(stop)) {
    const auto status = book_->status();
    if (status && is_over(*status)) break;
    const auto client = guest(stop);
    if (!client) {
      pause(pump_retry, stop);
      continue;
    }
    if (pump_once(**client, stop)) break;
  }
  if (stop.stop_requested()) return;
  log()->finish();
  const std::scoped_lock lock(mutex_);
  drained_ = true;
  changed_.notify_all();
}

bool VmSession::pump_once(GuestClient& guest, std::stop_token stop) {
  std::optional<Error> cannot_keep;
  const auto sink = [&](std::string_view bytes) {
    const auto kept = log()->append(bytes);
    if (!kept) cannot_keep = kept.error();
    return kept.has_value();
  };
  const std::uint64_t offset = log()->size();
  const auto range =
      guest.read_log({.offset = offset, .follow = true, .acknowledge = true}, sink, stop);
  if (stop.stop_requested()) return false;
  if (cannot_keep) {
    context_.log.error("cannot keep the job's log", {{"reason", cannot_keep->message}});
    pause(pump_retry, stop);
    return false;
  }
  if (!range) {
    if (range.error().code == ErrorCode::unreachable) {
      reconnect();
      return false;
    }
    context_.log.warning("cannot read the job's log", {{"reason", range.error().message}});
    // A log that cannot be had must not hide the result.
    const bool known = take_result(guest, stop);
    if (!known) pause(pump_retry, stop);
    return known;
  }
  if (range->begin > offset) {
    context_.log.error("a part of the job's log is gone",
                       {{"from", cat(offset)}, {"to", cat(range->begin)}});
  }
  const bool known = take_result(guest, stop);
  if (!known) pause(std::chrono::milliseconds(50), stop);
  return known;
}

bool VmSession::take_result(GuestClient& guest, std::stop_token stop) {
  const auto asked = guest.job_status(stop);
  if (!asked) {
    if (asked.error().code == ErrorCode::unreachable) reconnect();
    return false;
  }
  if (!is_over(asked->status)) return false;
  if (auto synced = log()->sync(); !synced) {
    context_.log.error("cannot keep the job's log", {{"reason", synced.error().message}});
    pause(pump_retry, stop);
    return false;
  }
  if (auto kept = book_->update(asked->status); !kept) {
    context_.log.error("cannot keep the job's result", {{"reason", kept.error().message}});
    pause(pump_retry, stop);
    return false;
  }
  context_.on_result();
  return true;
}

void VmSession::drain() {
  const auto status = book_->status();
  if (!status || is_over(*status)) return;
  const Deadline deadline(context_.limits.goodbye);
  const auto client = line_->client(context_.limits.goodbye);
  if (!client) return;
  if (auto stopped = (*client)->stop_job(std::chrono::seconds(2), deadline.token()); !stopped) {
    context_.log.warning("cannot stop the job", {{"reason", stopped.error().message}});
    return;
  }
  std::uint64_t reached = log()->size();
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, context_.limits.stalled_drain, [&] { return drained_; });
    if (drained_) return;
    lock.unlock();
    const std::uint64_t now = log()->size();
    if (now == reached) return;
    reached = now;
  }
}

bool VmSession::power_off() {
  const Deadline deadline(context_.limits.goodbye);
  const auto client = line_->client(context_.limits.goodbye);
  return client && (*client)->shutdown(deadline.token()).has_value();
}

void VmSession::end() {
  // What the guest sent last may still be on its way through the socket.
  line_->await_break(std::chrono::seconds(2));
  pump_.request_stop();
  line_->close();
  if (pump_.joinable()) pump_.join();
  if (auto kept = book_->close(); !kept) {
    context_.log.error("cannot write down that the job is lost",
                       {{"reason", kept.error().message}});
  }
  (void)log()->sync();
  log()->finish();
}

Result<void> VmSession::write_anew(const fs::path& dir) const {
  const auto status = book_->status();
  if (!status) return {};
  if (auto written = write_job(context_.host, dir, *status); !written) return written;
  return log()->copy_to(dir / vm_file::job_log);
}

}  // namespace fuse
