#include "cmd/secrets_input.h"

#include <CLI/CLI.hpp>
#include <istream>
#include <iterator>

#include "base/text.h"
#include "fusefile/secrets.h"

namespace fuse::cmd {

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

Result<std::map<std::string, std::string>> read_secrets(Context& context,
                                                        const SecretOptions& options) {
  std::map<std::string, std::string> values;
  if (!options.file.empty()) {
    const auto text = context.host.read_file(context.directory / options.file);
    if (!text) return in_context("the secrets file cannot be read", text.error());
    auto parsed = parse_secrets_file(*text);
    if (!parsed) return in_context(options.file, parsed.error());
    values = std::move(*parsed);
  }
  const SecretInputs inputs{.environment = context.variables,
                            .read_file = [&context](const fs::path& file) -> Result<std::string> {
                              return context.host.read_file(context.directory / file);
                            },
                            .read_stdin = [&context]() -> Result<std::string> {
                              return std::string(std::istreambuf_iterator<char>(context.in), {});
                            }};
  auto given = resolve_secret_flags(options.secrets, inputs);
  if (!given) return given.error();
  for (auto& [name, value] : *given) values[name] = std::move(value);
  return values;
}

}  // namespace fuse::cmd
