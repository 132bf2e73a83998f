#include "cmd/command_tree.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "base/text.h"

namespace fuse::cmd {

namespace {

const CLI::Option* find_option(const CLI::App* app, const std::string& flag) {
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      if (option->check_name(flag)) return option;
    }
  }
  return nullptr;
}

std::vector<const CLI::App*> all_commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* find_command(const CLI::App& app, const std::string& word) {
  for (const CLI::App* command : all_commands_of(app)) {
    if (command->check_name(word)) return command;
  }
  return nullptr;
}

}  // namespace

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  auto commands = all_commands_of(app);
  std::erase_if(commands, [](const CLI::App* command) { return command->get_group().empty(); });
  return commands;
}

std::vector<TreeEntry> commands_of(const CLI::App& app) {
  std::vector<TreeEntry> entries;
  for (const CLI::App* command : shown_commands(app)) {
    entries.push_back({command->get_name(), command->get_description()});
    for (const std::string& alias : command->get_aliases()) {
      entries.push_back({alias, command->get_description()});
    }
  }
  return entries;
}

std::vector<TreeEntry> flags_of(const CLI::App& app) {
  std::vector<TreeEntry> entries;
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      // A command's own --help stands before those above it.
      if (at != &app && option == at->get_help_ptr()) continue;
      for (const std::string& name : option->get_lnames()) {
        entries.push_back({cat("--", name), option->get_description()});
      }
    }
  }
  return entries;
}

TreeWalk::Word TreeWalk::take(const std::string& word) {
  if (std::exchange(awaits_value_, false)) return Word::value;
  if (word.size() > 1 && word.front() == '-') return take_flag(word);
  if (const CLI::App* const command = find_command(*at_, word)) {
    at_ = command;
    return Word::command;
  }
  return all_commands_of(*at_).empty() ? Word::argument : Word::unknown_command;
}

TreeWalk::Word TreeWalk::take_flag(const std::string& word) {
  const bool is_long = word.starts_with("--");
  const std::string name = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
  const CLI::Option* const option = find_option(at_, name);
  if (option == nullptr) return Word::unknown_flag;
  const bool has_value = is_long ? name != word : word.size() > 2;
  awaits_value_ = option->get_items_expected_max() > 0 && !has_value;
  return awaits_value_ ? Word::flag_with_value : Word::flag;
}

std::string TreeWalk::path() const {
  std::string path;
  for (const CLI::App* at = at_; at != nullptr; at = at->get_parent()) {
    path = path.empty() ? at->get_name() : cat(at->get_name(), " ", path);
  }
  return path;
}

}  // namespace fuse::cmd
