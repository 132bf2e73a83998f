#include "cmd/usage.h"

#include <CLI/CLI.hpp>

#include "base/suggest.h"
#include "base/text.h"
#include "cmd/command_tree.h"

namespace fuse::cmd {

namespace {

std::vector<std::string> names_of(const std::vector<TreeEntry>& entries) {
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const TreeEntry& entry : entries) names.push_back(entry.name);
  return names;
}

std::string suggestion(const std::string& word, const std::vector<TreeEntry>& known) {
  const std::vector<std::string> names = names_of(known);
  return did_you_mean(suggestions(word, std::vector<std::string_view>(names.begin(), names.end())));
}

// What is wrong with a word, or "".
std::string problem_with(const std::string& word, TreeWalk::Word meaning, const CLI::App& at) {
  if (meaning == TreeWalk::Word::unknown_flag) {
    const std::string name = word.substr(0, word.find('='));
    return cat("there is no option \"", name, "\"", suggestion(name, flags_of(at)));
  }
  if (meaning == TreeWalk::Word::unknown_command) {
    return cat("there is no command \"", word, "\"", suggestion(word, commands_of(at)));
  }
  return "";
}

}  // namespace

Misuse explain_misuse(const CLI::App& app, const std::vector<std::string>& arguments,
                      const std::string& fallback) {
  TreeWalk walk(app);
  std::string message;
  for (std::size_t i = 0; i < arguments.size() && message.empty(); ++i) {
    const TreeWalk::Word meaning = walk.take(arguments[i]);
    message = problem_with(arguments[i], meaning, walk.command());
  }
  if (message.empty() && walk.command().get_require_subcommand_min() > 0) {
    message = cat("which command? One of: ", join(names_of(commands_of(walk.command())), ", "));
  }
  if (message.empty()) message = fallback;
  const bool at_top = walk.command().get_parent() == nullptr;
  return {.message = std::move(message),
          .command = walk.path(),
          .command_name = at_top ? "" : walk.command().get_name()};
}

}  // namespace fuse::cmd
