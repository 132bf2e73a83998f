#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <ostream>

#include "base/text.h"
#include "cmd/command_tree.h"
#include "cmd/commands.h"
#include "cmd/completion_scripts.h"
#include "cmd/connect.h"
#include "cmd/output.h"
#include "cmd/target.h"

namespace fuse::cmd {

namespace {

bool takes_id(const CLI::App& command) {
  return std::ranges::any_of(command.get_options(), [](const CLI::Option* option) {
    return option->get_positional() && option->get_name() == "ID";
  });
}

// The environments there are, unless somebody would have to be started to ask.
std::vector<TreeEntry> environments_of(Context& context) {
  const auto target = find_target(context);
  if (!target) return {};
  if (!*target) {
    const auto local = local_client(context);
    const auto running = local ? (*local)->look() : local.error();
    if (!running || !*running) return {};
  }
  const auto api = context.connect(context);
  const auto page = api ? (*api)->list({.limit = 200}) : api.error();
  if (!page) return {};
  std::vector<TreeEntry> entries;
  for (const Environment& environment : page->environments) {
    entries.push_back({environment.id, std::string(to_string(environment.state))});
  }
  return entries;
}

std::vector<TreeEntry> candidates(Context& context, const CLI::App& root,
                                  const std::vector<std::string>& words) {
  TreeWalk walk(root);
  for (std::size_t i = 0; i + 1 < words.size(); ++i) (void)walk.take(words[i]);
  if (walk.awaits_value()) return {};
  if (!words.empty() && words.back().starts_with('-')) return flags_of(walk.command());
  auto commands = commands_of(walk.command());
  if (!commands.empty()) return commands;
  return takes_id(walk.command()) ? environments_of(context) : std::vector<TreeEntry>();
}

int run_complete(Context& context, const CLI::App& root, const std::vector<std::string>& words) {
  context.options.quiet = true;
  for (const TreeEntry& entry : candidates(context, root, words)) {
    context.out << entry.name << '\t' << printable(entry.help) << '\n';
  }
  return success;
}

int run_completion(Context& context, const std::string& shell) {
  const auto script = std::ranges::find(completion_scripts, shell, &CompletionScript::shell);
  if (script == completion_scripts.end()) {
    print_error(context.err,
                {ErrorCode::invalid_argument,
                 cat("there is no completion for \"", shell, "\": bash, zsh or fish")},
                context.colour_err());
    return wrong_usage;
  }
  context.out << script->text;
  return success;
}

}  // namespace

void add_completion(CLI::App& app, Invocation& invocation) {
  const auto shell = std::make_shared<std::string>();
  auto* completion = app.add_subcommand("completion", "Print completion for bash, zsh or fish");
  completion->add_option("SHELL", *shell, "bash, zsh or fish")->required()->type_name("");
  completion->callback([&invocation, shell] {
    invocation.action = [&invocation, shell] { return run_completion(invocation.context, *shell); };
  });

  auto* complete = app.add_subcommand("complete-words", "What can come next, for completion");
  complete->group("");
  complete->callback([&app, &invocation] {
    invocation.takes_command = true;
    invocation.action = [&app, &invocation] {
      return run_complete(invocation.context, app,
                          invocation.command.value_or(std::vector<std::string>()));
    };
  });
}

}  // namespace fuse::cmd
