#include "fusefile/secrets.h"

#include <utility>

#include "base/quote.h"
#include "base/text.h"

namespace fuse {

namespace {

// Not more than the name is shown, since the rest may be a secret.
Error bad_entry(std::string_view entry) {
  const std::string_view shown = entry.starts_with('=') ? "=[REDACTED]" : entry;
  return {ErrorCode::invalid_argument, cat("invalid key=value ", in_quotes(shown))};
}

std::string without_line_end(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

Result<std::string> from_environment(const std::string& name, const SecretInputs& inputs) {
  auto value = inputs.environment(name);
  if (value) return std::move(*value);
  return Error{ErrorCode::invalid_argument,
               cat("secret ", in_quotes(name), ": the environment has no variable of this name")};
}

// What stands behind the name of a flag, by the text after the first '='.
Result<std::string> value_of(const std::string& name, const std::string& written,
                             const SecretInputs& inputs) {
  if (written != "-" && !written.starts_with('@')) return written;
  auto text = written == "-" ? inputs.read_stdin() : inputs.read_file(written.substr(1));
  if (!text) return in_context(cat("secret ", in_quotes(name)), text.error());
  return without_line_end(*std::move(text));
}

}  // namespace

Result<std::map<std::string, std::string>> resolve_secret_flags(std::span<const std::string> flags,
                                                                const SecretInputs& inputs) {
  std::map<std::string, std::string> values;
  bool stdin_taken = false;
  for (const std::string& flag : flags) {
    const std::size_t equals = flag.find('=');
    const std::string name = flag.substr(0, equals);
    if (name.empty()) return bad_entry(flag);
    const bool named_only = equals == std::string::npos;
    const std::string written = named_only ? "" : flag.substr(equals + 1);
    if (written == "-" && std::exchange(stdin_taken, true)) {
      return Error{ErrorCode::invalid_argument,
                   cat("secret ", in_quotes(name), ": stdin can be read for one secret only")};
    }
    auto value = named_only ? from_environment(name, inputs) : value_of(name, written, inputs);
    if (!value) return value.error();
    values[name] = *std::move(value);
  }
  return values;
}

Result<std::map<std::string, std::string>> parse_secrets_file(std::string_view text) {
  std::map<std::string, std::string> values;
  for (const std::string& raw : split(text, '\n')) {
    const std::string_view line = trim(raw);
    if (line.empty() || line.front() == '#') continue;
    const std::size_t equals = line.find('=');
    if (equals == 0 || equals == std::string_view::npos) return bad_entry(line);
    values[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  return values;
}

std::vector<std::string> missing_secrets(std::span<const std::string> required,
                                         const std::map<std::string, std::string>& given,
                                         bool allow_empty) {
  std::vector<std::string> missing;
  for (const std::string& name : required) {
    const auto it = given.find(name);
    if (it == given.end() || (it->second.empty() && !allow_empty)) missing.push_back(name);
  }
  return missing;
}

Error missing_secrets_error(std::span<const std::string> missing) {
  return {ErrorCode::invalid_argument, cat("missing required secrets: ", join(missing, ", "))};
}

}  // namespace fuse
