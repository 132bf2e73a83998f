#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "base/units.h"
#include "cmd/commands.h"
#include "cmd/follow.h"
#include "cmd/health_wait.h"
#include "cmd/job_text.h"
#include "cmd/launch.h"
#include "cmd/misuse.h"
#include "cmd/output.h"
#include "orchestrator/api/json.h"

namespace fuse::cmd {

namespace {

struct UpOptions {
  LaunchOptions launch{};
  bool no_wait = false;
  bool follow = false;
  bool remove = false;
  bool wait_healthy = false;
  std::string health_timeout{};
  std::chrono::nanoseconds health_limit{std::chrono::minutes(2)};
};

// How long a job is watched after its start, so that one which fails at once is
// seen to.
constexpr std::chrono::milliseconds settle = std::chrono::seconds(3);
constexpr std::uint64_t shown_lines = 20;

void print_next_commands(std::ostream& out, const Environment& environment) {
  const std::string& id = environment.id;
  if (environment.job) out << "  output     fuse logs -f " << id << '\n';
  out << "  a command  fuse exec " << id << " -- COMMAND\n  a shell    fuse shell " << id
      << "\n  remove it  fuse rm " << id << '\n';
}

void print_summary(const Context& context, const Environment& environment) {
  if (context.json()) {
    print_json(context.out, to_json(environment));
    return;
  }
  context.out << environment.id << ": ";
  if (environment.job && environment.job->state == JobState::exited) {
    context.out << "its job ended: " << end_text(*environment.job) << '\n';
  } else {
    context.out << to_string(environment.state);
    if (!environment.host_id.empty()) context.out << " on " << environment.host_id;
    context.out << '\n';
  }
  for (const Endpoint& endpoint : environment.endpoints) {
    context.out << "  " << padded(endpoint.as, 9) << "  " << endpoint.url << '\n';
  }
  if (!context.options.quiet) print_next_commands(context.out, environment);
}

// The last lines of its output, for somebody who has not seen any.
void print_tail(const Context& context, EnvironmentApi& api, const std::string& uid) {
  std::string text;
  const auto read = api.logs(uid, {.tail = shown_lines},
                             [&text](std::string_view bytes) {
                               text += bytes;
                               return true;
                             },
                             {});
  if (!read || text.empty()) return;
  context.err << "the last of its output:\n" << text;
  if (!text.ends_with('\n')) context.err << '\n';
}

// The newest state, or, when nobody can say, what the events told.
Environment latest(EnvironmentApi& api, Environment environment, const Observed& observed) {
  auto now = api.get(environment.uid.empty() ? environment.id : environment.uid, true);
  if (now) return std::move(*now);
  environment.state = observed.state;
  environment.error = observed.error;
  if (observed.job) environment.job = observed.job;
  return environment;
}

int verdict(const Context& context, EnvironmentApi& api, const Environment& environment) {
  const std::string& uid = environment.uid.empty() ? environment.id : environment.uid;
  const bool job_failed = environment.job && environment.job->state == JobState::exited &&
                          environment.job->exit_code != 0;
  const bool job_lost = environment.job && environment.job->state == JobState::lost;
  if (environment.state == EnvironmentState::failed || job_lost) {
    print_tail(context, api, uid);
    Error error{ErrorCode::internal,
                cat(environment.id, ": ",
                    environment.error.empty() && environment.job ? end_text(*environment.job)
                                                                 : printable(environment.error))};
    error.details["hint"] = failure_hint(environment, error.message);
    return context.fail(error);
  }
  if (job_failed) print_tail(context, api, uid);
  print_summary(context, environment);
  return job_failed ? failed : success;
}

int say_left(const Context& context, const Environment& environment,
             const Interruption& interruption) {
  context.note(cat("\ndetached: ", environment.id, " goes on.\n  watch it   fuse environment get ",
                   environment.id, "\n  remove it  fuse rm ", environment.id));
  return interruption.exit_code();
}

// A step of its own: the environment is up already.
Result<void> wait_for_health(const Context& context, EnvironmentApi& api,
                             const Environment& created, const UpOptions& options,
                             Progress& progress, const Interruption& interruption) {
  EnvironmentEvent step{.event = "step", .key = "health", .message = "wait for its health check"};
  progress.step(step);
  const SteadyTime begun = context.clock.steady();
  auto healthy = wait_until_healthy(api, created.uid.empty() ? created.id : created.uid,
                                    context.clock, options.health_limit, interruption.token());
  step.duration_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(context.clock.steady() - begun).count();
  if (!healthy) step.error = "not healthy";
  if (!interruption.happened()) progress.step(step);
  return healthy;
}

// Waits until it is up, and its job has settled or ended.
int wait_until_up(Context& context, EnvironmentApi& api, const Environment& created,
                  const UpOptions& options, Progress& progress, Interruption& interruption) {
  Watcher watcher(api, created, progress);
  Observed seen = watcher.wait(
      [](const Observed& observed) {
        return observed.has_ended() || observed.job_ended() ||
               (observed.state == EnvironmentState::running &&
                (!observed.job || observed.job_runs()));
      },
      interruption.token());
  if (seen.job && !seen.has_ended() && !seen.job_ended() && !interruption.happened()) {
    seen = watcher.wait(
        [](const Observed& observed) { return observed.has_ended() || observed.job_ended(); },
        interruption.token(), settle);
  }
  if (seen.job_ended()) seen = watcher.wait_for_result(interruption.token());
  Result<void> healthy;
  const bool is_up = !seen.problem && !seen.has_ended() && !interruption.happened();
  if (options.wait_healthy && is_up) {
    healthy = wait_for_health(context, api, created, options, progress, interruption);
  }
  progress.stop_live();
  if (interruption.happened()) return say_left(context, created, interruption);
  if (seen.problem) return context.fail(*seen.problem);
  if (!healthy) return context.fail(healthy.error());
  return verdict(context, api, latest(api, created, seen));
}

int follow_up(Context& context, EnvironmentApi& api, const Environment& created,
              const UpOptions& /*options*/, Progress& progress, Interruption& interruption) {
  JobFollower follower(context, api, created, progress, interruption);
  const Followed followed = follower.follow();
  progress.stop_live();
  switch (followed.end) {
    case Followed::End::job_ended:
      context.note(cat(created.id, ": ", end_text(*followed.job, followed.error.message)));
      return followed.job->state == JobState::exited && followed.job->exit_code == 0 ? success
                                                                                     : failed;
    case Followed::End::no_job:
      return verdict(context, api, latest(api, created, {.state = EnvironmentState::running}));
    case Followed::End::environment_ended:
      context.fail(in_context(created.id, followed.error));
      return failed;
    case Followed::End::failed:
      return context.fail(in_context(created.id, followed.error));
    case Followed::End::detached:
      break;
  }
  say_detached(context, created.id, followed.offset);
  return interruption.exit_code();
}

Result<void> read_health_timeout(UpOptions& options) {
  if (options.health_timeout.empty()) return {};
  const auto limit = parse_duration(options.health_timeout);
  if (!limit) return in_context("--health-timeout", limit.error());
  options.health_limit = *limit;
  if (limit->count() > 0) return {};
  return Error{ErrorCode::invalid_argument, "--health-timeout must be positive"};
}

int run_up(Context& context, UpOptions options) {
  if (auto read = read_health_timeout(options); !read) return misuse(context, read.error());
  auto prepared = prepare_launch(context, options.launch);
  if (const auto* code = std::get_if<ExitCode>(&prepared)) return *code;
  Launch& launch = std::get<Launch>(prepared);
  if (options.wait_healthy && !launch.compiled.request.healthcheck) {
    return misuse(context, {ErrorCode::invalid_argument,
                            "--wait-healthy has nothing to wait for: the Fusefile has no "
                            "healthcheck"});
  }
  launch.request.on_exit = options.remove ? OnExit::destroy : OnExit::keep;
  if (options.launch.dry_run) {
    print_dry_run(context, launch);
    return success;
  }

  Interruption interruption(context);
  const auto api = context.connect(context);
  if (!api) return context.fail(api.error());
  context.note(plan_text(launch, where_text(context)));
  const ProgressOptions shown = progress_options(context);
  Progress progress(context.err, context.clock, shown);
  const auto created = (*api)->create(launch.request, {.respond_async = true});
  if (!created) return context.fail(create_error(created.error(), launch));
  if (options.no_wait) {
    print_summary(context, *created);
    return success;
  }
  const ProgressTicker ticker(progress, shown.style);
  const auto finish = options.follow ? follow_up : wait_until_up;
  return finish(context, **api, *created, options, progress, interruption);
}

}  // namespace

void add_up(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<UpOptions>();
  auto* up = app.add_subcommand("up", "Start a Fusefile's environment and keep it");
  add_launch_options(*up, options->launch);
  auto* no_wait = up->add_flag("--no-wait", options->no_wait, "Return once it is placed");
  auto* follow = up->add_flag("--follow", options->follow, "Show the job's output until it ends");
  auto* healthy = up->add_flag("--wait-healthy", options->wait_healthy,
                               "Return once its health check passes; 1 when it fails")
                      ->excludes(no_wait)
                      ->excludes(follow);
  up->add_option("--health-timeout", options->health_timeout,
                 "How long to wait for that; 2m unless said")
      ->type_name("DURATION")
      ->needs(healthy);
  up->add_flag("--rm", options->remove, "Remove it when its job has ended");
  up->callback([&invocation, options] {
    invocation.action = [&invocation, options] { return run_up(invocation.context, *options); };
  });
}

}  // namespace fuse::cmd
