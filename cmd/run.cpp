#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>

#include "base/text.h"
#include "cmd/commands.h"
#include "cmd/follow.h"
#include "cmd/job_text.h"
#include "cmd/launch.h"

namespace fuse::cmd {

namespace {

struct RunOptions {
  LaunchOptions launch{};
  bool keep = false;
  bool stop_on_signal = false;
};

// The first signal stops the job instead of ending the view; the next detaches.
void stop_job_on_signal(const Context& context, EnvironmentApi& api, const std::string& uid,
                        Interruption& interruption) {
  interruption.on_signal([&context, &api, uid, asked = false](int /*number*/) mutable {
    if (std::exchange(asked, true)) return true;
    context.note("stopping the job; once more leaves it alone and detaches");
    const auto stopped = api.stop_job(uid);
    if (!stopped) print_error(context.err, stopped.error(), context.colour_err());
    return !stopped.has_value();
  });
}

int finish(const Context& context, const RunOptions& options, const Environment& environment,
           JobFollower& follower, const Followed& followed) {
  switch (followed.end) {
    case Followed::End::job_ended: {
      const bool removed = options.keep || follower.wait_for_removal();
      context.note(cat(environment.id, ": ", end_text(*followed.job, followed.error.message)));
      if (!removed) context.note("  its VM is still being removed: see fuse ps");
      context.note(options.keep ? cat("  a shell there: fuse shell ", environment.id,
                                      "   remove it: fuse rm ", environment.id)
                                : cat("  its output again: fuse logs ", environment.id));
      return exit_code_of(*followed.job);
    }
    case Followed::End::no_job:
      context.note(cat(environment.id,
                       " is running; its script ran within the create, and its output was not "
                       "kept\n  remove it: fuse rm ",
                       environment.id));
      return success;
    case Followed::End::environment_ended:
    case Followed::End::failed: {
      Error error = in_context(environment.id, followed.error);
      error.details.emplace("hint", failure_hint(environment, error.message));
      return context.fail_own(error);
    }
    case Followed::End::detached:
      break;
  }
  say_detached(context, environment.id, followed.offset);
  return fuse_failed;
}

Error nothing_to_run(const Launch& launch) {
  return {ErrorCode::invalid_argument,
          cat(launch.input.shown, " has neither run nor build: there is no job to run"),
          {{"hint", "to start an environment without a job: fuse up"}}};
}

int run_run(Context& context, const RunOptions& options) {
  auto prepared = prepare_launch(context, options.launch);
  if (std::holds_alternative<ExitCode>(prepared)) return fuse_failed;
  Launch& launch = std::get<Launch>(prepared);
  if (!launch.file.run && launch.file.build.empty()) {
    return context.fail_own(nothing_to_run(launch));
  }
  launch.request.on_exit = options.keep ? OnExit::keep : OnExit::destroy;
  if (options.launch.dry_run) {
    print_dry_run(context, launch);
    return success;
  }

  Interruption interruption(context);
  const auto api = context.connect(context);
  if (!api) return context.fail_own(api.error());
  context.note(plan_text(launch, where_text(context)));
  const ProgressOptions shown = progress_options(context);
  Progress progress(context.err, context.clock, shown);
  const auto created = (*api)->create(launch.request, {.respond_async = true});
  if (!created) return context.fail_own(create_error(created.error(), launch));

  if (options.stop_on_signal) {
    stop_job_on_signal(context, **api, created->uid.empty() ? created->id : created->uid,
                       interruption);
  }
  JobFollower follower(context, **api, *created, progress, interruption);
  const ProgressTicker ticker(progress, shown.style);
  const Followed followed = follower.follow();
  interruption.on_signal({});
  progress.stop_live();
  const int code = finish(context, options, *created, follower, followed);
  return followed.end == Followed::End::detached ? interruption.exit_code() : code;
}

}  // namespace

void add_run(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<RunOptions>();
  auto* run = app.add_subcommand(
      "run", "Run a Fusefile's job to its end in a VM of its own, with its output and exit code");
  add_launch_options(*run, options->launch);
  run->add_flag("--keep", options->keep, "Keep the VM when the job has ended");
  run->add_flag("--stop-on-signal", options->stop_on_signal,
                "Ctrl-C stops the job instead of detaching from it");
  run->callback([&invocation, options] {
    invocation.action = [&invocation, options] { return run_run(invocation.context, *options); };
  });
}

}  // namespace fuse::cmd
