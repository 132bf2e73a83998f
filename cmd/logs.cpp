#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <vector>

#include "base/text.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/interruption.h"
#include "cmd/job_text.h"

namespace fuse::cmd {

namespace {

struct LogsOptions {
  std::string id{};
  bool follow = false;
  std::uint64_t since = 0;
  std::optional<std::uint64_t> tail{};
  bool exit_code = false;
};

int fail_logs(const Context& context, const LogsOptions& options, const Error& error) {
  return options.exit_code ? context.fail_own(error) : context.fail(error);
}

int detach(const Context& context, const LogsOptions& options, const Interruption& interruption,
           std::uint64_t offset) {
  context.note(cat("\ndetached at byte ", offset, ": the job is not touched.\n  go on there   ",
                   "fuse logs -f ", options.id, " --since ", offset));
  return interruption.exit_code();
}

// What of the output was asked for and is not kept any more, in words; "" when all
// of it was shown.
std::string missing_text(const LogsOptions& options, const LogRange& shown,
                         const std::optional<JobStatus>& job) {
  std::vector<std::string> parts;
  if (!options.tail && shown.begin > options.since) {
    parts.push_back(cat("bytes ", options.since, " to ", shown.begin));
  }
  if (job && is_over(*job) && shown.end < job->log_bytes) {
    parts.push_back(cat("bytes ", shown.end, " to ", job->log_bytes));
  }
  if (parts.empty()) return "";
  return cat(join(parts, " and "), " of the output of ", options.id, " are not kept any more");
}

// The code of a job whose output has been shown.
int code_of_job(const Context& context, EnvironmentApi& api, const LogsOptions& options,
                const std::string& uid) {
  const auto environment = api.get(uid, true);
  if (!environment) return context.fail_own(environment.error());
  if (!environment->job) {
    return context.fail_own({ErrorCode::not_found, cat(options.id, " has no job")});
  }
  if (environment->job->state == JobState::exited) return exit_code_of(*environment->job);
  if (environment->job->state == JobState::lost || is_terminal(environment->state)) {
    return context.fail_own(
        {ErrorCode::conflict,
         cat("the job of ", options.id, " was ", end_text(*environment->job, environment->error))});
  }
  return context.fail_own({ErrorCode::conflict,
                           cat("the job of ", options.id, " has not ended, so it has no exit code"),
                           {{"hint", cat("wait for it: fuse logs -f --exit-code ", options.id)}}});
}

int run_logs(Context& context, const LogsOptions& options) {
  Interruption interruption(context);
  const auto api = context.connect(context);
  if (!api) return fail_logs(context, options, api.error());
  // By its own id from here on: another of the same name may come.
  const auto environment = (*api)->get(options.id, true);
  if (!environment) return fail_logs(context, options, environment.error());
  const std::string uid = environment->uid.empty() ? environment->id : environment->uid;

  std::uint64_t shown = 0;
  const auto read = (*api)->logs(
      uid, {.offset = options.since, .follow = options.follow, .tail = options.tail},
      [&](std::string_view bytes) {
        context.out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        context.out.flush();
        if (!context.out.good()) {
          interruption.output_closed();
          return false;
        }
        shown += bytes.size();
        return true;
      },
      interruption.token());
  if (interruption.happened()) {
    const std::uint64_t begin = read ? read->begin : options.since;
    return detach(context, options, interruption, begin + shown);
  }
  if (!read) return fail_logs(context, options, read.error());
  // Of a job that ended while it was followed, the length is known only now.
  const auto now = options.follow ? (*api)->get(uid, true) : environment;
  const std::string missing = missing_text(options, *read, now ? now->job : std::nullopt);
  if (!missing.empty()) context.note(missing);
  return options.exit_code ? code_of_job(context, **api, options, uid) : success;
}

}  // namespace

void add_logs(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<LogsOptions>();
  auto* logs = app.add_subcommand("logs", "Show a job's output, also after it has ended");
  add_environment_id(*logs, options->id);
  logs->add_flag("-f,--follow", options->follow, "Go on until the job has ended");
  auto* since = logs->add_option("--since", options->since, "Start at this byte of the output")
                    ->type_name("OFFSET");
  must_be_at_least(since, 0);
  auto* tail = logs->add_option("--tail", options->tail, "Start at the last N lines")
                   ->type_name("N")
                   ->excludes(since);
  must_be_at_least(tail, 0);
  logs->add_flag("--exit-code", options->exit_code, "Exit with the job's code");
  logs->callback([&invocation, options] {
    invocation.action = [&invocation, options] { return run_logs(invocation.context, *options); };
  });
}

}  // namespace fuse::cmd
