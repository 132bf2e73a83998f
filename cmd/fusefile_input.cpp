#include "cmd/fusefile_input.h"

#include <CLI/CLI.hpp>
#include <system_error>

#include "base/bounded_read.h"
#include "base/text.h"
#include "cmd/output.h"
#include "fusefile/grammar.h"

namespace fuse::cmd {

namespace {

// More than a Fusefile may be, so that the compiler can say by how much.
constexpr std::uint64_t most_read = 64U << 20U;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Result<std::string> name_of(const Context& context, const FusefileChoice& choice) {
  if (!choice.flag.empty() && !choice.argument.empty()) {
    return Error{ErrorCode::invalid_argument,
                 cat("the Fusefile is named twice: -f ", choice.flag, " and ", choice.argument)};
  }
  if (!choice.flag.empty()) return choice.flag;
  if (!choice.argument.empty()) return choice.argument;
  for (const std::string_view name : fusefile_names) {
    if (is_there(context.directory / name)) return std::string(name);
  }
  return Error{ErrorCode::not_found,
               cat("there is no Fusefile in ", context.directory.native(),
                   ": looked for Fusefile, Fusefile.yaml, Fusefile.yml, fusefile.yaml and "
                   "fusefile.yml"),
               {{"hint", "name one: -f FILE"}}};
}

}  // namespace

void add_fusefile_choice(CLI::App& command, FusefileChoice& choice) {
  command.add_option("-f,--file", choice.flag, "The Fusefile")->type_name("FILE");
  command.add_option("FUSEFILE", choice.argument, "The Fusefile; else the one in this folder")
      ->type_name("");
}

void add_task_id(CLI::App& command, std::string& task_id) {
  const auto objection = [](const std::string& given) {
    if (is_dns_label(given)) return std::string();
    return cat("invalid task id \"", printable(given),
               "\": lower case letters, digits and dashes in it, "
               "63 at most, a letter or digit at both ends");
  };
  command.add_option("--task-id", task_id, "The task id instead of the file's name")
      ->check(CLI::Validator(objection, ""))
      ->type_name("ID");
}

Result<FusefileText> read_fusefile(Context& context, const FusefileChoice& choice) {
  auto name = name_of(context, choice);
  if (!name) return name.error();
  FusefileText input{.shown = *name, .path = (context.directory / *name).lexically_normal()};
  std::error_code ignored;
  if (fs::is_directory(input.path, ignored)) {
    return Error{
        ErrorCode::invalid_argument,
        cat(*name, " is a folder, not a Fusefile"),
        {{"hint", cat("name the file in it: -f ", (fs::path(*name) / "Fusefile").native())}}};
  }
  auto text = read_at_most(input.path, most_read);
  if (!text) return in_context("the Fusefile cannot be read", text.error());
  input.text = std::move(*text);
  return input;
}

LoadedFusefile load_fusefile(const FusefileText& input, const SourceOptions& options) {
  ParsedFusefile parsed = parse_fusefile(input.text);
  LoadedFusefile loaded{.file = std::move(parsed.file),
                        .diagnostics = std::move(parsed.diagnostics)};
  const auto& understood = loaded.file ? loaded.file : parsed.draft;
  if (!understood) return loaded;
  PosixSourceTree tree;
  loaded.sources = load_sources(*understood, input.path, tree, options, loaded.diagnostics);
  loaded.required_secrets = required_secrets_of(*understood);
  return loaded;
}

CompiledFusefile with_copied_files(CompiledFusefile compiled, const LoadedSources& sources) {
  for (const auto& [path, copied] : sources.copied) {
    compiled.request.files[path] = base64_encode(copied.bytes);
  }
  return compiled;
}

void print_diagnostics(const Context& context, const FusefileText& input,
                       const Diagnostics& diagnostics) {
  print(context.err, diagnostics, input.shown, input.text,
        {.excerpt = true, .colour = context.colour_err()});
}

}  // namespace fuse::cmd
