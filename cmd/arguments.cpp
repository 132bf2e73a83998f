#include "cmd/arguments.h"

#include <CLI/CLI.hpp>

#include "base/suggest.h"
#include "base/text.h"
#include "cmd/output.h"

namespace fuse::cmd {

namespace {

CLI::Validator rule(std::function<std::string(std::string&)> check) {
  return {std::move(check), "", ""};
}

CLI::Option* as_id(CLI::Option* option) {
  option->required()->type_name("")->check(rule([](std::string& id) {
    return trim(id).empty() ? std::string("an empty id names no environment") : std::string();
  }));
  return option;
}

}  // namespace

CLI::Option* add_environment_id(CLI::App& command, std::string& id) {
  return as_id(command.add_option("ID", id, "The environment, or its task"));
}

CLI::Option* add_environment_ids(CLI::App& command, std::vector<std::string>& ids) {
  return as_id(command.add_option("ID", ids, "The environments, or their tasks"));
}

CLI::Option* must_be_at_least(CLI::Option* option, std::int64_t least) {
  return option->check(rule([least](std::string& text) {
    const auto number = parse_int(text);
    if (number && *number >= least) return std::string();
    return cat("must be a whole number, ", least, " or more, got \"", printable(text), "\"");
  }));
}

CLI::Option* must_be_one_of(CLI::Option* option, std::initializer_list<std::string_view> values) {
  const std::vector<std::string_view> known(values);
  return option->check(rule([known](std::string& text) {
    if (std::ranges::find(known, text) != known.end()) return std::string();
    const std::vector<std::string> names(known.begin(), known.end());
    return cat("must be one of ", join(names, ", "), ", got \"", printable(text), "\"",
               did_you_mean(suggestions(text, known)));
  }));
}

}  // namespace fuse::cmd
