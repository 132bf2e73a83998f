#include "cmd/settings.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

namespace fuse::cmd {

namespace {

std::string_view unquoted(std::string_view value) {
  const bool quoted = value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
                      value.back() == value.front();
  return quoted ? value.substr(1, value.size() - 2) : value;
}

bool is_known(std::string_view name, const SettingFile& known) {
  return std::ranges::find(known.secrets, name) != known.secrets.end() ||
         std::ranges::find(known.settings, name, &Setting::variable) != known.settings.end();
}

}  // namespace

void add_setting_flags(CLI::App& command, Settings settings, std::string_view usual_file,
                       SettingFlags& flags) {
  for (const Setting& setting : settings) {
    command
        .add_option(std::string(setting.flag), flags.values[setting.variable],
                    cat(setting.help, " (", setting.variable, ")"))
        ->type_name(std::string(setting.type));
  }
  command
      .add_option("--env-file", flags.file,
                  cat("File of such settings, NAME=VALUE a line (usually ", usual_file, ")"))
      ->type_name("FILE");
}

Result<SettingValues> parse_settings(std::string_view text, std::string_view name,
                                     const SettingFile& known) {
  SettingValues out;
  std::size_t number = 0;
  for (const std::string& whole : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(whole);
    if (line.empty() || line.front() == '#') continue;
    const std::size_t equals = line.find('=');
    const std::string variable(trim(line.substr(0, equals)));
    if (equals == std::string_view::npos) {
      return Error{ErrorCode::invalid_argument,
                   cat(name, ":", number, ": want NAME=VALUE, got \"", variable, "\"")};
    }
    if (!is_known(variable, known)) {
      return Error{ErrorCode::invalid_argument,
                   cat(name, ":", number, ": ", variable, " is no setting of ", known.service)};
    }
    out[variable] = unquoted(trim(line.substr(equals + 1)));
  }
  return out;
}

Result<SettingValues> read_settings_file(Host& host, const fs::path& file,
                                         std::string_view usual_file, const SettingFile& known) {
  const fs::path path = file.empty() ? fs::path(usual_file) : file;
  const auto text = host.read_file(path);
  if (text) return parse_settings(*text, path.native(), known);
  if (file.empty() && text.error().code == ErrorCode::not_found) return SettingValues();
  return text.error();
}

std::string SettingSources::flag_value(std::string_view variable) const {
  const auto flag = flags_.values.find(variable);
  return flag == flags_.values.end() ? std::string() : flag->second;
}

std::string SettingSources::text(std::string_view variable) const {
  if (std::string said = flag_value(variable); !said.empty()) return said;
  if (std::string said = variables_(std::string(variable)).value_or(""); !said.empty()) return said;
  const auto line = file_.find(variable);
  return line == file_.end() ? std::string() : line->second;
}

std::string SettingSources::origin(std::string_view variable) const {
  if (!flag_value(variable).empty()) {
    return std::string(std::ranges::find(settings_, variable, &Setting::variable)->flag);
  }
  if (!variables_(std::string(variable)).value_or("").empty()) return std::string(variable);
  return cat(variable, " in ", name_);
}

std::optional<std::int64_t> SettingSources::number_in(std::string_view variable, std::int64_t least,
                                                      std::int64_t most) {
  const std::string said = text(variable);
  if (said.empty()) return std::nullopt;
  const auto value = parse_int(said);
  if (value && *value >= least && *value <= most) return value;
  complain(variable,
           cat("must be a whole number from ", least, " to ", most, ", got \"", said, "\""));
  return std::nullopt;
}

void SettingSources::path(std::string_view variable, fs::path& into) {
  const fs::path said = text(variable);
  if (said.empty()) return;
  if (said.is_absolute()) {
    into = said.lexically_normal();
    return;
  }
  complain(variable, cat("must be an absolute path, got \"", said.native(), "\""));
}

void SettingSources::flag(std::string_view variable, bool& into) {
  constexpr std::array yes = {"1", "true", "yes", "on"};
  constexpr std::array no = {"0", "false", "no", "off"};
  const std::string said = lowercase(text(variable));
  if (said.empty()) return;
  if (std::ranges::find(yes, said) != yes.end()) {
    into = true;
  } else if (std::ranges::find(no, said) != no.end()) {
    into = false;
  } else {
    complain(variable, cat("must be true or false, got \"", said, "\""));
  }
}

void SettingSources::complain(std::string_view variable, std::string_view problem) {
  if (!problem_) {
    problem_ = Error{ErrorCode::invalid_argument, cat(origin(variable), " ", problem)};
  }
}

Result<std::string> read_token(const SettingSources& sources, Host& host,
                               std::string_view file_variable, std::string_view variable) {
  const fs::path file = sources.text(file_variable);
  std::string token = sources.text(variable);
  if (!file.empty()) {
    const auto text = host.read_file(file);
    if (!text) return in_context(sources.origin(file_variable), text.error());
    token = trim(*text);
  }
  const auto printable = [](char c) { return c > ' ' && c < '\x7f'; };
  if (std::ranges::all_of(token, printable)) return token;
  return Error{ErrorCode::invalid_argument,
               "the token may have no blanks and only printable ASCII characters: it is sent in a "
               "header"};
}

}  // namespace fuse::cmd
