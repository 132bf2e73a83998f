#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "cmd/commands.h"
#include "cmd/fusefile_input.h"
#include "cmd/misuse.h"
#include "cmd/output.h"
#include "cmd/target.h"
#include "fusefile/compile.h"
#include "orchestrator/api/json.h"

namespace fuse::cmd {

namespace {

// First where it would go, or why nowhere; then every host with its reasons.
void print_explanation(const Context& context, const Explanation& explanation) {
  if (!explanation.host_id.empty()) {
    context.out << "would run on " << printable(explanation.host_id) << '\n';
  } else {
    context.out << "cannot be placed: " << printable(explanation.message) << '\n';
  }
  if (explanation.hosts.empty()) return;
  context.out << '\n';
  Table table({"HOST", "FITS", "WHY"});
  for (const HostVerdict& verdict : explanation.hosts) {
    if (verdict.reasons.empty()) {
      const bool chosen = verdict.host_id == explanation.host_id;
      table.add(
          {printable(verdict.host_id), "yes", chosen ? "chosen" : cat("score ", verdict.score)});
    }
    bool first = true;
    for (const PlacementReason& reason : verdict.reasons) {
      table.add({first ? printable(verdict.host_id) : "", first ? "no" : "",
                 cat(reason.code, ": ", printable(reason.text))});
      first = false;
    }
    if (!verdict.reasons.empty() && !verdict.gpu_summary.empty()) {
      table.add({"", "", printable(verdict.gpu_summary)});
    }
  }
  table.print(context.out, context.colour_out());
}

int run_explain(Context& context, const FusefileChoice& choice) {
  const auto input = read_fusefile(context, choice);
  if (!input) return misuse(context, input.error());
  const LoadedFusefile loaded = load_fusefile(*input, {});
  if (!loaded.ok()) {
    print_diagnostics(context, *input, loaded.diagnostics);
    return failed;
  }
  const CompiledFusefile compiled = compile(*loaded.file, "explain", loaded.sources);
  const auto fleet = connect_fleet(context);
  if (!fleet) return context.fail(fleet.error());
  const auto explanation = (*fleet)->explain(compiled.request.spec);
  if (!explanation) return context.fail(explanation.error());
  if (context.json()) {
    print_json(context.out, to_json(*explanation));
  } else {
    print_explanation(context, *explanation);
  }
  return explanation->host_id.empty() ? no_placement : success;
}

}  // namespace

void add_explain(CLI::App& app, Invocation& invocation) {
  const auto choice = std::make_shared<FusefileChoice>();
  auto* explain =
      app.add_subcommand("explain", "For each host, why a Fusefile would or would not run there");
  add_fusefile_choice(*explain, *choice);
  explain->callback([&invocation, choice] {
    invocation.action = [&invocation, choice] { return run_explain(invocation.context, *choice); };
  });
}

}  // namespace fuse::cmd
