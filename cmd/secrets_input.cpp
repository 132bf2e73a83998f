#include "cmd/secrets_input.h"

#include <CLI/CLI.hpp>
#include <istream>
#include <utility>

#include "base/bounded_read.h"
#include "base/text.h"

namespace fuse::cmd {

namespace {

// All secrets of one request are at most so long.
constexpr std::uint64_t most_read = 1U << 20U;

}  // namespace

void add_secret_options(CLI::App& command, SecretOptions& options) {
  command
      .add_option("--secret", options.secrets,
                  "A secret: NAME (from the environment), NAME=VALUE, NAME=@FILE or NAME=- (stdin)")
      ->type_name("NAME[=VALUE]")
      ->expected(1)
      ->take_all();
  command.add_option("--secrets-file", options.file, "Secrets from lines NAME=VALUE of a file")
      ->type_name("FILE");
  command.add_flag("--allow-empty-secrets", options.allow_empty, "Take empty values of secrets");
}

GivenSecrets read_secrets(Context& context, const SecretOptions& options) {
  GivenSecrets all;
  if (!options.file.empty()) {
    const auto text = read_at_most(context.directory / options.file, most_read);
    if (text) {
      all = parse_secrets_file(*text);
      for (std::string& problem : all.problems) problem = cat(options.file, ": ", problem);
    } else {
      all.problems.push_back(cat("the secrets file cannot be read: ", text.error().message));
    }
  }
  const SecretInputs inputs{
      .environment = context.variables,
      .read_file = [&context](const fs::path& file) -> Result<std::string> {
        return read_at_most(context.directory / file, most_read);
      },
      .read_stdin = [&context] { return read_at_most(context.in, "stdin", most_read); }};
  GivenSecrets flags = resolve_secret_flags(options.secrets, inputs);
  for (auto& [name, value] : flags.values) all.values[name] = std::move(value);
  all.problems.insert(all.problems.end(), flags.problems.begin(), flags.problems.end());
  return all;
}

}  // namespace fuse::cmd
