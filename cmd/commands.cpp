#include "cmd/commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <map>
#include <ostream>

#include "base/text.h"
#include "base/version.h"
#include "cmd/usage.h"

namespace fuse::cmd {

namespace {

const std::map<std::string, OutputFormat> output_formats = {{"table", OutputFormat::table},
                                                            {"json", OutputFormat::json}};
const std::map<std::string, ColourChoice> colour_choices = {{"auto", ColourChoice::automatic},
                                                            {"always", ColourChoice::always},
                                                            {"never", ColourChoice::never}};

constexpr std::string_view host_mode_flag = "--host-mode";

void add_global_options(CLI::App& app, GlobalOptions& options) {
  app.add_option("-o,--output", options.output, "Form of the results: table or json")
      ->transform(CLI::CheckedTransformer(output_formats).description(""))
      ->type_name("FORM");
  app.add_option("--color", options.colour, "Colours: auto, always or never")
      ->transform(CLI::CheckedTransformer(colour_choices).description(""))
      ->type_name("WHEN");
  app.add_option("--context", options.context, "Talk to the orchestrator of this context")
      ->type_name("NAME");
  app.add_option("--config", options.config, "File of the contexts")->type_name("FILE");
  app.add_flag("-q,--quiet", options.quiet, "Say nothing but results and errors");
  app.add_flag("--verbose", options.verbose, "Say more about what is going on");
  // Spelled out before the line is parsed: here for --help alone.
  app.add_flag_function(
      std::string(host_mode_flag), [](std::int64_t) {}, "The same as `agent serve`");
  app.set_version_flag("-v,--version", cat("fuse ", version()), "Print the version");
}

// Makes the options of a command's parents known below it, so that they may
// stand anywhere on the line.
void let_options_fall_through(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    command->fallthrough();
    command->set_help_flag("-h,--help", "Print this help");
    let_options_fall_through(*command);
  }
}

int refuse(const Context& context, const Misuse& misuse) {
  print_error(context.err,
              {ErrorCode::invalid_argument,
               misuse.message,
               {{"hint", cat("see: ", misuse.command, " --help")}}},
              context.colour_err());
  return exits_with_guest_code(misuse.command_name) ? fuse_failed : wrong_usage;
}

// `--host-mode` is another spelling of `agent serve`.
void spell_out_host_mode(std::vector<std::string>& words) {
  if (std::erase(words, host_mode_flag) > 0) words.insert(words.begin(), {"agent", "serve"});
}

// Parses and leaves the action; or answers itself, and returns the exit code.
std::optional<int> parse(CLI::App& app, const std::vector<std::string>& words, Context& context) {
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    app.parse(std::move(reversed));
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    context.out << app.help();  // of the command it was asked for
    return success;
  } catch (const CLI::CallForVersion& version_text) {
    context.out << version_text.what() << '\n';
    return success;
  } catch (const CLI::ParseError& error) {
    return refuse(context, explain_misuse(app, words, error.what()));
  }
}

}  // namespace

void add_commands(CLI::App& app, Invocation& invocation) {
  add_run(app, invocation);
  add_up(app, invocation);
  add_logs(app, invocation);
  add_stop(app, invocation);
  add_ps(app, invocation);
  add_exec(app, invocation);
  add_shell(app, invocation);
  add_cp(app, invocation);
  add_rm(app, invocation);
  add_environment(app, invocation);
  add_init(app, invocation);
  add_validate(app, invocation);
  add_compile(app, invocation);
  add_schema(app, invocation);
  add_explain(app, invocation);
  add_connect(app, invocation);
  add_context(app, invocation);
  add_status(app, invocation);
  add_host(app, invocation);
  add_apikeys(app, invocation);
  add_metrics(app, invocation);
  add_image(app, invocation);
  add_local(app, invocation);
  add_agent(app, invocation);
  add_orchestrator(app, invocation);
  add_completion(app, invocation);
  add_man_pages(app, invocation);
  add_version(app, invocation);
}

int run(const std::vector<std::string>& arguments, Context& context) {
  CLI::App app("Runs jobs in virtual machines, with the GPUs they ask for.", "fuse");
  app.set_help_flag("-h,--help", "Print this help");
  app.require_subcommand(1);
  Invocation invocation{.context = context};
  add_global_options(app, context.options);
  add_commands(app, invocation);
  let_options_fall_through(app);

  // The parser would take words behind `--` apart; they are a guest's business.
  const auto dashes = std::ranges::find(arguments, "--");
  std::vector<std::string> words(arguments.begin(), dashes);
  if (dashes != arguments.end()) {
    invocation.command = std::vector<std::string>(std::next(dashes), arguments.end());
  }
  spell_out_host_mode(words);
  if (words.empty() && !invocation.command) {
    context.err << app.help();
    return wrong_usage;
  }
  if (const auto answered = parse(app, words, context)) return *answered;
  if (invocation.command && !invocation.takes_command) {
    return refuse(context, explain_misuse(app, words, "nothing is expected after \"--\""));
  }
  return invocation.action();
}

}  // namespace fuse::cmd
