#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "base/units.h"
#include "cmd/commands.h"
#include "cmd/follow.h"
#include "cmd/job_text.h"
#include "cmd/launch.h"
#include "cmd/output.h"
#include "orchestrator/api/json.h"

namespace fuse::cmd {

namespace {

struct UpOptions {
  LaunchOptions launch{};
  bool no_wait = false;
  bool follow = false;
  bool remove = false;
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

// Waits until it is up, and its job has settled or ended.
int wait_until_up(Context& context, EnvironmentApi& api, const Environment& created,
                  Progress& progress, Interruption& interruption) {
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
  progress.stop_live();
  if (interruption.happened()) return say_left(context, created, interruption);
  if (seen.problem) return context.fail(*seen.problem);
  return verdict(context, api, latest(api, created, seen));
}

int follow_up(Context& context, EnvironmentApi& api, const Environment& created, Progress& progress,
              Interruption& interruption) {
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

int run_up(Context& context, const UpOptions& options) {
  auto prepared = prepare_launch(context, options.launch);
  if (const auto* code = std::get_if<ExitCode>(&prepared)) return *code;
  Launch& launch = std::get<Launch>(prepared);
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
  return finish(context, **api, *created, progress, interruption);
}

}  // namespace

void add_up(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<UpOptions>();
  auto* up = app.add_subcommand("up", "Start a Fusefile's environment and keep it");
  add_launch_options(*up, options->launch);
  up->add_flag("--no-wait", options->no_wait, "Return once it is placed");
  up->add_flag("--follow", options->follow, "Show the job's output until it ends");
  up->add_flag("--rm", options->remove, "Remove it when its job has ended");
  up->callback([&invocation, options] {
    invocation.action = [&invocation, options] { return run_up(invocation.context, *options); };
  });
}

}  // namespace fuse::cmd
