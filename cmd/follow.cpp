#include "cmd/follow.h"

#include <ostream>
#include <utility>

#include "base/text.h"

namespace fuse::cmd {

namespace {

constexpr std::chrono::milliseconds removal_patience = std::chrono::minutes(1);

}  // namespace

JobFollower::JobFollower(Context& context, EnvironmentApi& api, Environment environment,
                         Progress& progress, Interruption& interruption)
    : context_(context),
      api_(api),
      environment_(std::move(environment)),
      uid_(environment_.uid.empty() ? environment_.id : environment_.uid),
      progress_(progress),
      interruption_(interruption),
      watcher_(api, environment_, progress) {}

Followed JobFollower::detached() const {
  return {.end = Followed::End::detached, .offset = offset_.load()};
}

Followed JobFollower::failed(const Error& error) const {
  return {.end = Followed::End::failed, .error = error, .offset = offset_.load()};
}

Observed JobFollower::wait_for_job() {
  const auto begun_or_over = [](const Observed& observed) {
    return observed.job_began() || observed.has_ended();
  };
  Observed seen = watcher_.wait(
      [&](const Observed& observed) {
        return begun_or_over(observed) ||
               (observed.state == EnvironmentState::running && !observed.job);
      },
      interruption_.token());
  if (seen.over || begun_or_over(seen) || interruption_.happened()) return seen;
  // It runs and no job was told of yet: only now it is certain whether there is one.
  const auto environment = api_.get(uid_, true);
  if (!environment || !environment->job) return seen;
  watcher_.learn(*environment);
  return watcher_.wait(begun_or_over, interruption_.token());
}

Followed JobFollower::follow() {
  const Observed seen = wait_for_job();
  if (interruption_.happened()) return detached();
  if (seen.problem) return failed(*seen.problem);
  if (seen.state == EnvironmentState::running && !seen.job) return {.end = Followed::End::no_job};
  // A job that never began ends with its environment.
  if (!seen.job_began()) return result();
  progress_.stop_live();
  if (const auto done = stream(); !done) return failed(done.error());
  if (interruption_.happened()) return detached();
  return result();
}

Result<void> JobFollower::stream() {
  const auto read = api_.logs(
      uid_, {.offset = 0, .follow = true},
      [this](std::string_view bytes) {
        context_.out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        context_.out.flush();
        if (!context_.out.good()) {
          interruption_.output_closed();
          return false;
        }
        offset_ += bytes.size();
        return true;
      },
      interruption_.token());
  if (!read) return read.error();
  return {};
}

Followed JobFollower::result_of(const Observed& observed) {
  Followed followed{.offset = offset_.load()};
  if (observed.job_ended()) {
    followed.end = Followed::End::job_ended;
    followed.job = observed.job;
    followed.error.message = observed.error;
    return followed;
  }
  followed.end = Followed::End::environment_ended;
  followed.error = {ErrorCode::unavailable,
                    observed.error.empty()
                        ? cat(environment_.id, " was removed before its job had ended")
                        : observed.error};
  return followed;
}

Followed JobFollower::result() {
  // The log ends a moment before the result is known everywhere.
  const Observed seen = watcher_.wait_for_result(interruption_.token());
  if (seen.job_ended()) return result_of(seen);
  if (interruption_.happened()) return detached();
  // The stream of events may have ended without the last one: ask.
  const auto environment = api_.get(uid_, true);
  if (!environment) return failed(seen.problem.value_or(environment.error()));
  return result_of(
      {.state = environment->state, .error = environment->error, .job = environment->job});
}

bool JobFollower::wait_for_removal() {
  const Observed seen = watcher_.wait([](const Observed& observed) { return observed.has_ended(); },
                                      interruption_.token(), removal_patience);
  return seen.has_ended() || (seen.over && !seen.problem);
}

void say_detached(const Context& context, const std::string& id, std::uint64_t offset) {
  const std::string since = offset > 0 ? cat(" --since ", offset) : "";
  context.note(cat("\ndetached: the job goes on.\n  follow it again   fuse logs -f ", id, since,
                   "\n  its result        fuse logs --exit-code ", id,
                   "\n  stop it           fuse stop ", id, "\n  a shell there     fuse shell ",
                   id));
}

}  // namespace fuse::cmd
