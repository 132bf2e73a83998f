#include "fusefile/secrets.h"

#include <utility>

#include "base/quote.h"
#include "base/text.h"

namespace fuse {

namespace {

// What stands there may be a secret, or a line of one.
constexpr std::string_view bad_entry = "invalid key=value \"[REDACTED]\"";

std::string without_line_end(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

// The end of an error's message, without the file that it begins with.
std::string reason_of(const Error& error) {
  const std::size_t colon = error.message.rfind(": ");
  return colon == std::string::npos ? error.message : error.message.substr(colon + 2);
}

// Reads the flags one by one.
class FlagReader {
 public:
  explicit FlagReader(const SecretInputs& inputs) : inputs_(inputs) {}

  void read(const std::string& flag) {
    const std::size_t equals = flag.find('=');
    const std::string name = flag.substr(0, equals);
    if (name.empty()) {
      given.problems.emplace_back(bad_entry);
    } else if (equals == std::string::npos) {
      take_from_environment(name);
    } else {
      take(name, flag.substr(equals + 1));
    }
  }

  GivenSecrets given{};

 private:
  void take_from_environment(const std::string& name) {
    auto value = inputs_.environment(name);
    if (value) {
      given.values[name] = *std::move(value);
    } else {
      report(name, "the environment has no variable of this name");
    }
  }

  // `written` is what stands after the first '='.
  void take(const std::string& name, const std::string& written) {
    if (written == "-") {
      if (std::exchange(stdin_taken_, true)) {
        report(name, "stdin can be read for one secret only");
      } else {
        take_text(name, inputs_.read_stdin(), "stdin cannot be read");
      }
    } else if (written.starts_with('@')) {
      // Its name is not shown: it may be a value that begins with @.
      take_text(name, inputs_.read_file(written.substr(1)),
                "the file that is named after @ cannot be read");
    } else {
      given.values[name] = written;
    }
  }

  void take_text(const std::string& name, Result<std::string> text, std::string_view problem) {
    if (text) {
      given.values[name] = without_line_end(*std::move(text));
    } else {
      report(name, cat(problem, ": ", reason_of(text.error())));
    }
  }

  void report(const std::string& name, std::string_view problem) {
    given.problems.push_back(cat("secret ", in_quotes(name), ": ", problem));
  }

  const SecretInputs& inputs_;
  bool stdin_taken_ = false;
};

}  // namespace

GivenSecrets resolve_secret_flags(std::span<const std::string> flags, const SecretInputs& inputs) {
  FlagReader reader(inputs);
  for (const std::string& flag : flags) reader.read(flag);
  return std::move(reader.given);
}

GivenSecrets parse_secrets_file(std::string_view text) {
  GivenSecrets given;
  std::size_t number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (line.empty() || line.front() == '#') continue;
    const std::size_t equals = line.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      given.problems.push_back(cat("line ", number, ": ", bad_entry));
    } else {
      given.values[std::string(line.substr(0, equals))] = line.substr(equals + 1);
    }
  }
  return given;
}

bool is_missing(const std::string& name, const std::map<std::string, std::string>& given,
                bool allow_empty) {
  const auto it = given.find(name);
  return it == given.end() || (it->second.empty() && !allow_empty);
}

std::vector<std::string> missing_secrets(std::span<const std::string> required,
                                         const std::map<std::string, std::string>& given,
                                         bool allow_empty) {
  std::vector<std::string> missing;
  for (const std::string& name : required) {
    if (is_missing(name, given, allow_empty)) missing.push_back(name);
  }
  return missing;
}

Error secrets_error(std::span<const std::string> missing, std::span<const std::string> problems) {
  std::vector<std::string> parts;
  if (!missing.empty()) parts.push_back(cat("missing required secrets: ", join(missing, ", ")));
  parts.insert(parts.end(), problems.begin(), problems.end());
  return {ErrorCode::invalid_argument,
          join(parts, "; "),
          {{"hint",
            "give each: --secret NAME (from the environment), NAME=VALUE, NAME=@FILE or NAME=- "
            "(stdin), or all of them: --secrets-file FILE"}}};
}

}  // namespace fuse
