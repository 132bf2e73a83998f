#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/quote.h"
#include "base/text.h"
#include "cmd/commands.h"
#include "cmd/fusefile_input.h"
#include "cmd/misuse.h"
#include "cmd/output.h"
#include "cmd/secrets_input.h"
#include "fusefile/report.h"
#include "fusefile/secrets.h"

namespace fuse::cmd {

namespace {

struct ValidateOptions {
  FusefileChoice file{};
  SecretOptions secrets{};
  bool check_secrets = false;
  SourceOptions sources{};
};

nlohmann::ordered_json to_json(const Diagnostic& diagnostic) {
  nlohmann::ordered_json json;
  json["path"] = diagnostic.path;
  json["line"] = diagnostic.where.line;
  json["column"] = diagnostic.where.column;
  json["message"] = diagnostic.message;
  json["code"] = to_string(diagnostic.code);
  if (!diagnostic.hint.empty()) json["hint"] = diagnostic.hint;
  return json;
}

void print_report(const Context& context, const FusefileText& input, const Diagnostics& diagnostics,
                  const std::vector<RequiredSecret>& secrets) {
  nlohmann::ordered_json errors = nlohmann::ordered_json::array();
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    if (diagnostic.severity == Severity::error) errors.push_back(to_json(diagnostic));
  }
  nlohmann::ordered_json report;
  report["path"] = input.shown;
  report["valid"] = diagnostics.ok();
  report["errors"] = std::move(errors);
  report["required_secrets"] = nlohmann::ordered_json::array();
  for (const RequiredSecret& secret : secrets) report["required_secrets"].push_back(secret.name);
  print_json(context.out, report);
}

// Reports each required secret that was not given.
Result<void> check_secrets(Context& context, const SecretOptions& options,
                           const std::vector<RequiredSecret>& required, Diagnostics& diagnostics) {
  const GivenSecrets given = read_secrets(context, options);
  if (!given.problems.empty()) return secrets_error({}, given.problems);
  for (const RequiredSecret& secret : required) {
    if (!is_missing(secret.name, given.values, options.allow_empty)) continue;
    diagnostics.add({.code = ProblemCode::required,
                     .where = secret.where,
                     .path = "secrets",
                     .message = cat("required secret ", in_quotes(secret.name), " is not set"),
                     .hint = cat("give it: --secret ", path_below("", secret.name),
                                 " takes it from the environment")});
  }
  return {};
}

int run_validate(Context& context, const ValidateOptions& options) {
  const auto input = read_fusefile(context, options.file);
  if (!input) return misuse(context, input.error());
  LoadedFusefile loaded = load_fusefile(*input, options.sources);
  if (options.check_secrets) {
    if (const auto checked =
            check_secrets(context, options.secrets, loaded.required_secrets, loaded.diagnostics);
        !checked) {
      return misuse(context, checked.error());
    }
  }
  if (context.json()) {
    print_report(context, *input, loaded.diagnostics, loaded.required_secrets);
  } else if (!context.options.quiet) {
    const bool terminal = context.terminal.out_is_terminal();
    print(context.out, loaded.diagnostics, input->shown, input->text,
          {.excerpt = terminal, .colour = context.colour_out()});
    // Programs read stdout, a line a problem; the people behind them read stderr.
    if (!terminal) print_hints(context.err, loaded.diagnostics, input->shown);
    if (loaded.ok()) context.note(cat(input->shown, " is valid"));
  }
  return loaded.ok() ? success : failed;
}

}  // namespace

void add_validate(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<ValidateOptions>();
  auto* validate = app.add_subcommand("validate", "Check a Fusefile and show every problem");
  add_fusefile_choice(*validate, options->file);
  validate->add_flag("--check-secrets", options->check_secrets,
                     "Also that every required secret is given");
  add_secret_options(*validate, options->secrets);
  validate->add_flag("--allow-outside", options->sources.allow_outside,
                     "Take files from outside the Fusefile's repository");
  validate->callback([&invocation, options] {
    invocation.action = [&invocation, options] {
      return run_validate(invocation.context, *options);
    };
  });
}

}  // namespace fuse::cmd
