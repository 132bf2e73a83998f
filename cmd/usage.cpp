#include "cmd/usage.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.h"

namespace fuse::cmd {

namespace {

// The option called `flag` ("--name" or "-n") of `app` or of a command above it.
const CLI::Option* find_option(const CLI::App* app, const std::string& flag) {
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      if (option->check_name(flag)) return option;
    }
  }
  return nullptr;
}

std::vector<std::string> flags_of(const CLI::App* app) {
  std::vector<std::string> flags;
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) flags.push_back(cat("--", name));
    }
  }
  return flags;
}

const CLI::App* find_command(const CLI::App& app, const std::string& word) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->check_name(word)) return command;
  }
  return nullptr;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;  // hidden
    names.push_back(command->get_name());
    const auto& aliases = command->get_aliases();
    names.insert(names.end(), aliases.begin(), aliases.end());
  }
  return names;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const auto nearest = closest(word, known);
  return nearest ? cat(": did you mean \"", *nearest, "\"?") : "";
}

// One walk over the words; `problem` is what it stumbled over.
struct Walk {
  const CLI::App* at;
  std::string problem{};

  // Returns how many words after this one belong to it.
  std::size_t take_flag(const std::string& word) {
    const std::string name = word.substr(0, word.find('='));
    const bool is_long = word.starts_with("--");
    const CLI::Option* const option = find_option(at, is_long ? name : word.substr(0, 2));
    if (option == nullptr) {
      problem = cat("there is no option \"", name, "\"", did_you_mean(name, flags_of(at)));
      return 0;
    }
    const bool has_value = is_long ? name != word : word.size() > 2;
    if (option->get_items_expected_max() == 0 || has_value) return 0;
    return 1;
  }

  void take_word(const std::string& word) {
    if (const CLI::App* const command = find_command(*at, word)) {
      at = command;
      return;
    }
    const auto commands = commands_of(*at);
    if (commands.empty()) return;  // an argument
    problem = cat("there is no command \"", word, "\"", did_you_mean(word, commands));
  }
};

std::string path_of(const CLI::App* app) {
  std::string path;
  for (; app != nullptr; app = app->get_parent()) {
    path = path.empty() ? app->get_name() : cat(app->get_name(), " ", path);
  }
  return path;
}

}  // namespace

Misuse explain_misuse(const CLI::App& app, const std::vector<std::string>& arguments,
                      const std::string& fallback) {
  Walk walk{.at = &app};
  for (std::size_t i = 0; i < arguments.size() && walk.problem.empty(); ++i) {
    const std::string& word = arguments[i];
    if (word.size() > 1 && word.front() == '-') {
      i += walk.take_flag(word);
    } else {
      walk.take_word(word);
    }
  }
  std::string message = walk.problem;
  if (message.empty() && walk.at->get_require_subcommand_min() > 0) {
    message = cat("which command? One of: ", join(commands_of(*walk.at), ", "));
  }
  if (message.empty()) message = fallback;
  return {.message = std::move(message),
          .command = path_of(walk.at),
          .command_name = walk.at->get_parent() == nullptr ? "" : walk.at->get_name()};
}

}  // namespace fuse::cmd
