#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/host.h"
#include "base/text.h"
#include "cmd/config.h"

namespace CLI {
class App;
}

namespace fuse::cmd {

// One thing that a service can be told: by a flag, else by an environment variable,
// else by a line of its settings file.
struct Setting {
  std::string_view variable;
  std::string_view flag;
  std::string_view type;  // of its value, for --help
  std::string_view help;
};
using Settings = std::span<const Setting>;

// Values by variable, as texts.
using SettingValues = std::map<std::string, std::string, std::less<>>;

// The flags of a command that takes settings, filled while the line is read.
struct SettingFlags {
  std::map<std::string_view, std::string> values{};
  std::string file{};  // --env-file
};
void add_setting_flags(CLI::App& command, Settings settings, std::string_view usual_file,
                       SettingFlags& flags);

// The lines NAME=VALUE of a settings file: # and blank lines are skipped, quotes
// around a value are taken off.  `secrets` are names that have no flag.  The error
// names file and line.
struct SettingFile {
  std::string_view service;  // "the agent", for errors
  Settings settings;
  std::span<const std::string_view> secrets;
};
Result<SettingValues> parse_settings(std::string_view text, std::string_view name,
                                     const SettingFile& known);
// Reads `file`; without one, the usual file if it is there.
Result<SettingValues> read_settings_file(Host& host, const fs::path& file,
                                         std::string_view usual_file, const SettingFile& known);

// Where settings come from, one after another; remembers the first problem.
class SettingSources {
 public:
  // `name` is the settings file's, for errors.
  SettingSources(Settings settings, const SettingFlags& flags, const Variables& variables,
                 SettingValues file, std::string name)
      : settings_(settings),
        flags_(flags),
        variables_(variables),
        file_(std::move(file)),
        name_(std::move(name)) {}

  [[nodiscard]] std::string text(std::string_view variable) const;
  // What the value at hand was said by: "--port", "QEMU_AGENT_PORT in FILE".
  [[nodiscard]] std::string origin(std::string_view variable) const;

  template <class T>
  void number(std::string_view variable, std::int64_t least, std::int64_t most, T& into) {
    if (const auto value = number_in(variable, least, most)) into = static_cast<T>(*value);
  }
  // Absolute, in its normal form.
  void path(std::string_view variable, fs::path& into);
  // 1, true, yes or on; 0, false, no or off.
  void flag(std::string_view variable, bool& into);
  template <class T>
  void choice(std::string_view variable,
              std::initializer_list<std::pair<std::string_view, T>> choices, T& into) {
    const std::string said = text(variable);
    if (said.empty()) return;
    std::vector<std::string> names;
    for (const auto& [name, value] : choices) {
      names.emplace_back(name);
      if (name != said) continue;
      into = value;
      return;
    }
    complain(variable, cat("must be one of ", join(names, ", "), ", got \"", said, "\""));
  }
  void complain(std::string_view variable, std::string_view problem);
  [[nodiscard]] const std::optional<Error>& problem() const { return problem_; }

 private:
  [[nodiscard]] std::optional<std::int64_t> number_in(std::string_view variable, std::int64_t least,
                                                      std::int64_t most);
  [[nodiscard]] std::string flag_value(std::string_view variable) const;

  Settings settings_;
  const SettingFlags& flags_;
  const Variables& variables_;
  SettingValues file_;
  std::string name_;
  std::optional<Error> problem_{};
};

// The secret in the file that `file_variable` names, else the value of `variable`;
// "" when neither is said.  invalid_argument unless it is printable ASCII without
// blanks, as what is sent in a header must be.
Result<std::string> read_token(const SettingSources& sources, Host& host,
                               std::string_view file_variable, std::string_view variable);

}  // namespace fuse::cmd
