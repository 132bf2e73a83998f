#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "base/result.h"

namespace fuse {

// Where values of secrets may come from besides the command line.
struct SecretInputs {
  std::function<std::optional<std::string>(const std::string& name)> environment{};
  std::function<Result<std::string>(const fs::path& file)> read_file{};
  std::function<Result<std::string>()> read_stdin{};
};

// Values by name, and what kept others from being had, in words that hold
// nothing which might be a value.
struct GivenSecrets {
  std::map<std::string, std::string> values{};
  std::vector<std::string> problems{};
};

// What `--secret` gives: `K` (from the environment), `K=V`, `K=@FILE`, `K=-`
// (stdin, once).  One line end at the end of a file or of stdin is not part of
// the value.  Later flags win.
GivenSecrets resolve_secret_flags(std::span<const std::string> flags, const SecretInputs& inputs);

// The lines NAME=VALUE of a secrets file: trimmed, blank ones and those that
// begin with # skipped, no quoting.
GivenSecrets parse_secrets_file(std::string_view text);

// Whether no value is given; an empty one counts as none unless `allow_empty`.
bool is_missing(const std::string& name, const std::map<std::string, std::string>& given,
                bool allow_empty);
// The required names that are missing, in their order.
std::vector<std::string> missing_secrets(std::span<const std::string> required,
                                         const std::map<std::string, std::string>& given,
                                         bool allow_empty);

// invalid_argument "missing required secrets: a, b; PROBLEM; PROBLEM", with the
// ways to give them.
Error secrets_error(std::span<const std::string> missing, std::span<const std::string> problems);

}  // namespace fuse
