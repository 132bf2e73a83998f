#include "cmd/launch.h"

#include <CLI/CLI.hpp>
#include <ostream>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "cmd/misuse.h"
#include "cmd/output.h"
#include "cmd/target.h"
#include "fusefile/render.h"
#include "fusefile/secrets.h"

namespace fuse::cmd {

namespace {

std::string counted(std::int64_t count, std::string_view one, std::string_view many) {
  return cat(count, " ", count == 1 ? one : many);
}

std::string machine_text(const ResourceSpec& spec) {
  std::vector<std::string> parts;
  parts.push_back(spec.cpus > 0 ? counted(spec.cpus, "CPU", "CPUs") : "1 CPU (default)");
  parts.push_back(spec.ram_mb > 0 ? human_bytes(static_cast<std::uint64_t>(spec.ram_mb) << 20U)
                                  : "1 GiB of memory (default)");
  if (spec.storage_gb > 0) parts.push_back(cat(spec.storage_gb, " GiB of disk"));
  if (spec.gpus > 0) {
    std::string gpus = counted(spec.gpus, "GPU", "GPUs");
    if (!spec.gpu_profile.empty()) gpus = cat(spec.gpus, " x ", spec.gpu_profile);
    if (!spec.gpu_kind.empty()) gpus += cat(" (", spec.gpu_kind, ")");
    parts.push_back(std::move(gpus));
  }
  parts.push_back(spec.image.empty() ? "image base (default)" : cat("image ", spec.image));
  if (spec.max_runtime_seconds > 0) {
    parts.push_back(
        cat("at most ", human_duration(std::chrono::seconds(spec.max_runtime_seconds))));
  }
  return join(parts, ", ");
}

std::string one_line(std::string_view text) {
  const std::string_view trimmed = trim(text);
  const std::size_t end = trimmed.find('\n');
  if (end == std::string_view::npos) return printable(trimmed);
  return cat(printable(trimmed.substr(0, end)), " ...");
}

std::string work_text(const Fusefile& file) {
  std::string text;
  const auto steps = static_cast<std::int64_t>(file.build.size());
  if (steps > 0) text = counted(steps, "build step", "build steps");
  if (!file.run) return text.empty() ? "nothing: there is no build and no run" : text;
  const std::string run = std::holds_alternative<std::string>(*file.run)
                              ? one_line(std::get<std::string>(*file.run))
                              : one_line(join(std::get<std::vector<std::string>>(*file.run), " "));
  return text.empty() ? run : cat(text, ", then: ", run);
}

std::string task_id_note(TaskIdOrigin origin) {
  return origin == TaskIdOrigin::directory ? " (named after the folder)" : "";
}

// Reports what keeps the Fusefile from being sent.
std::optional<ExitCode> refused(const Context& context, const FusefileText& input,
                                const LoadedFusefile& loaded) {
  if (!loaded.diagnostics.all().empty()) print_diagnostics(context, input, loaded.diagnostics);
  if (loaded.ok()) return std::nullopt;
  return failed;
}

void show_copy(const Context& context, const LoadedSources& sources) {
  for (const auto& [path, copied] : sources.copied) {
    context.err << "  copy  " << printable(copied.source) << " -> " << printable(path) << " ("
                << human_bytes(copied.bytes.size()) << ")\n";
  }
}

}  // namespace

void add_launch_options(CLI::App& command, LaunchOptions& options) {
  add_fusefile_choice(command, options.file);
  add_secret_options(command, options.secrets);
  add_task_id(command, options.task_id);
  command.add_flag("--dry-run,--plan", options.dry_run, "Only print what would be sent");
  command.add_flag("--show-copy", options.show_copy, "List the files that `copy` carries");
  command.add_flag("--allow-outside", options.sources.allow_outside,
                   "Take files from outside the Fusefile's repository");
}

std::variant<Launch, ExitCode> prepare_launch(Context& context, const LaunchOptions& options) {
  auto input = read_fusefile(context, options.file);
  if (!input) return misuse(context, input.error());
  LoadedFusefile loaded = load_fusefile(*input, options.sources);
  if (const auto code = refused(context, *input, loaded)) return *code;

  const TaskId task = task_id_of(options.task_id, *loaded.file, input->path);
  CompiledFusefile compiled = compile(*loaded.file, task.id, loaded.sources);
  Launch launch{.task_id_origin = task.origin};
  if (!options.dry_run) {
    auto secrets = read_secrets(context, options.secrets);
    const auto missing =
        missing_secrets(compiled.required_secrets, secrets.values, options.secrets.allow_empty);
    if (!missing.empty() || !secrets.problems.empty()) {
      print_error(context.err, secrets_error(missing, secrets.problems), context.colour_err());
      return secrets.problems.empty() ? failed : wrong_usage;
    }
    auto request = to_send(*loaded.file, compiled, loaded.sources, std::move(secrets.values));
    if (!request) return static_cast<ExitCode>(context.fail(request.error()));
    launch.request = std::move(*request);
  }
  if (options.show_copy) show_copy(context, loaded.sources);
  launch.input = std::move(*input);
  launch.file = std::move(*loaded.file);
  launch.sources = std::move(loaded.sources);
  launch.compiled = std::move(compiled);
  return launch;
}

std::string where_text(const Context& context) {
  const auto target = find_target(context);
  return target && *target ? (*target)->url : "this machine";
}

std::string plan_text(const Launch& launch, const std::string& where) {
  const CreateEnvironmentRequest& request = launch.compiled.request;
  std::string text =
      cat("plan  ", request.task_id, task_id_note(launch.task_id_origin), " on ", where, ": ",
          machine_text(request.spec), "\n      runs ", work_text(launch.file));
  if (launch.request.on_exit == OnExit::destroy) text += "\n      the VM is removed when it ends";
  return text;
}

void print_dry_run(const Context& context, const Launch& launch) {
  context.out << render(with_copied_files(launch.compiled, launch.sources),
                        context.json() ? CompileFormat::json : CompileFormat::text);
}

Error create_error(Error error, const Launch& launch) {
  const std::string& task = launch.compiled.request.task_id;
  if (error.code == ErrorCode::conflict && !error.details.contains("hint")) {
    error.details["hint"] =
        cat("follow it: fuse logs -f fuse-", task, "   remove it: fuse rm fuse-", task,
            "   or start another: --task-id NAME");
  }
  return error;
}

ProgressOptions progress_options(const Context& context) {
  ProgressOptions options{.colour = context.colour_err()};
  if (context.options.quiet) {
    options.style = ProgressStyle::none;
  } else if (context.terminal.err_is_terminal() &&
             context.variables("TERM").value_or("dumb") != "dumb") {
    options.style = ProgressStyle::live;
  }
  if (const int cols = context.terminal.size().cols; cols > 0) options.columns = cols;
  return options;
}

}  // namespace fuse::cmd
