#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "base/text.h"
#include "cmd/commands.h"
#include "cmd/fusefile_input.h"
#include "cmd/misuse.h"
#include "fusefile/render.h"

namespace fuse::cmd {

namespace {

struct CompileOptions {
  FusefileChoice file{};
  std::string format{};
  std::string only{};
  std::string task_id{};
  SourceOptions sources{};
};

// What to print of the compiled file, from --format, --only and -o.
Result<std::function<std::string(const CompiledFusefile&)>> printer_of(
    const Context& context, const CompileOptions& options) {
  if (!options.only.empty()) {
    if (!options.format.empty()) {
      return Error{ErrorCode::invalid_argument, "--only and --format are mutually exclusive"};
    }
    const auto part = compile_part_of(options.only);
    if (!part) {
      return Error{ErrorCode::invalid_argument,
                   cat("invalid --only \"", options.only,
                       "\" (one of spec, startup-script, manifest, expose, secrets)")};
    }
    return std::function<std::string(const CompiledFusefile&)>(
        [part](const CompiledFusefile& compiled) { return render_part(compiled, *part); });
  }
  const std::string name =
      !options.format.empty() ? options.format : (context.json() ? "json" : "text");
  const auto format = compile_format_of(name);
  if (!format) {
    return Error{ErrorCode::invalid_argument,
                 cat("invalid --format \"", name, "\" (one of text, json, yaml)")};
  }
  return std::function<std::string(const CompiledFusefile&)>(
      [format](const CompiledFusefile& compiled) { return render(compiled, *format); });
}

int run_compile(Context& context, const CompileOptions& options) {
  const auto printer = printer_of(context, options);
  if (!printer) return misuse(context, printer.error());
  const auto input = read_fusefile(context, options.file);
  if (!input) return misuse(context, input.error());
  const LoadedFusefile loaded = load_fusefile(*input, options.sources);
  if (!loaded.ok()) {
    print_diagnostics(context, *input, loaded.diagnostics);
    return failed;
  }
  const TaskId task = task_id_of(options.task_id, *loaded.file, input->path);
  if (task.origin == TaskIdOrigin::directory) {
    context.note(cat("task id ", task.id, " is after the folder; name: or --task-id give another"));
  }
  context.out << (*printer)(
      with_copied_files(compile(*loaded.file, task.id, loaded.sources), loaded.sources));
  return success;
}

}  // namespace

void add_compile(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<CompileOptions>();
  auto* compile = app.add_subcommand("compile", "Print the request that a Fusefile stands for");
  add_fusefile_choice(*compile, options->file);
  compile->add_option("--format", options->format, "text, json or yaml")->type_name("FORM");
  compile
      ->add_option("--only", options->only,
                   "One part: spec, startup-script, manifest, expose or secrets")
      ->type_name("PART");
  add_task_id(*compile, options->task_id);
  compile->add_flag("--allow-outside", options->sources.allow_outside,
                    "Take files from outside the Fusefile's repository");
  compile->callback([&invocation, options] {
    invocation.action = [&invocation, options] {
      return run_compile(invocation.context, *options);
    };
  });
}

}  // namespace fuse::cmd
