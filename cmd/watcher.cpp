#include "cmd/watcher.h"

namespace fuse::cmd {

namespace {

// How long after its job an environment may take to tell why it ended.
constexpr std::chrono::seconds explanation_patience{5};

}  // namespace

bool Observed::job_began() const {
  return job && job->state != JobState::pending;
}

bool Observed::job_runs() const {
  return job_began() && job->phase != JobPhase::build;
}

bool Observed::job_ended() const {
  return job && is_over(*job);
}

Watcher::Watcher(EnvironmentApi& api, const Environment& environment, Progress& progress)
    : progress_(progress),
      observed_{.state = environment.state, .error = environment.error, .job = environment.job},
      thread_([this, &api, id = environment.uid.empty() ? environment.id : environment.uid](
                  const std::stop_token& stop) { follow(api, id, stop); }) {}

void Watcher::follow(EnvironmentApi& api, const std::string& uid, const std::stop_token& stop) {
  const auto done = api.events(
      uid, {.all_kinds = true}, [this](const EnvironmentEvent& event) { return take(event); },
      stop);
  {
    const std::scoped_lock lock(mutex_);
    observed_.over = true;
    if (!done) observed_.problem = done.error();
  }
  changed_.notify_all();
}

bool Watcher::take(const EnvironmentEvent& event) {
  if (event.event == "step") progress_.step(event);
  {
    const std::scoped_lock lock(mutex_);
    if (event.state) {
      observed_.state = *event.state;
      if (!event.error.empty()) observed_.error = event.error;
    }
    if (event.job) observed_.job = event.job;
  }
  changed_.notify_all();
  return true;
}

void Watcher::learn(const Environment& environment) {
  {
    const std::scoped_lock lock(mutex_);
    observed_.state = environment.state;
    observed_.error = environment.error;
    if (environment.job) observed_.job = environment.job;
  }
  changed_.notify_all();
}

Observed Watcher::wait(const Wanted& wanted, const std::stop_token& stop,
                       std::optional<std::chrono::milliseconds> limit) {
  std::unique_lock lock(mutex_);
  const auto done = [&] { return observed_.over || wanted(observed_); };
  if (limit) {
    changed_.wait_for(lock, stop, *limit, done);
  } else {
    changed_.wait(lock, stop, done);
  }
  return observed_;
}

Observed Watcher::wait_for_result(const std::stop_token& stop) {
  const auto has_ended = [](const Observed& observed) { return observed.has_ended(); };
  const Observed seen = wait(
      [](const Observed& observed) { return observed.job_ended() || observed.has_ended(); }, stop);
  const bool lost = seen.job && seen.job->state == JobState::lost;
  return lost ? wait(has_ended, stop, explanation_patience) : seen;
}

}  // namespace fuse::cmd
