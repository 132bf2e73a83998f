#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <system_error>

#include "base/fd.h"
#include "base/files.h"
#include "base/text.h"
#include "cmd/commands.h"
#include "cmd/fusefile_input.h"
#include "cmd/misuse.h"
#include "cmd/output.h"
#include "fusefile/starter.h"

namespace fuse::cmd {

namespace {

struct InitOptions {
  FusefileChoice file{};
  bool gpu = false;
  bool force = false;
};

struct NewFile {
  std::string shown{};  // as the user would name it
  fs::path path{};      // absolute
  std::string text{};
};

// The Fusefile to make, and the .fuseignore beside it.
Result<std::array<NewFile, 2>> files_to_make(const Context& context, const InitOptions& options) {
  if (!options.file.flag.empty() && !options.file.argument.empty()) {
    return Error{
        ErrorCode::invalid_argument,
        cat("the Fusefile is named twice: -f ", options.file.flag, " and ", options.file.argument)};
  }
  fs::path shown = options.file.flag.empty() ? options.file.argument : options.file.flag;
  std::error_code ignored;
  if (shown.empty() || fs::is_directory(context.directory / shown, ignored)) shown /= "Fusefile";
  const fs::path ignore = shown.parent_path() / ".fuseignore";
  return std::array<NewFile, 2>{
      NewFile{shown.native(), context.directory / shown, starter_fusefile(options.gpu)},
      NewFile{ignore.native(), context.directory / ignore, starter_ignore_file()}};
}

Error exists_already(const std::string& shown) {
  return {ErrorCode::conflict,
          cat(shown, " is there already, and nothing was changed"),
          {{"hint", "name another file, or replace it: --force"}}};
}

// Any file that would be hidden by a new one, or that a new one would hide.
std::optional<Error> check_unused(const std::array<NewFile, 2>& files) {
  std::error_code ignored;
  for (const NewFile& file : files) {
    if (fs::exists(fs::symlink_status(file.path, ignored))) return exists_already(file.shown);
  }
  const fs::path shown = files[0].shown;
  if (shown.filename() != fusefile_names.front()) return std::nullopt;
  for (const std::string_view name : fusefile_names) {
    const fs::path other = files[0].path.parent_path() / name;
    if (fs::exists(fs::symlink_status(other, ignored))) {
      return exists_already((shown.parent_path() / name).native());
    }
  }
  return std::nullopt;
}

// Makes the file; one that has come up in the meantime stays as it is.
Result<void> make(const NewFile& file) {
  const Fd fd(::open(file.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) return errno_error(cat("create ", file.shown), errno);
  return write_all(fd.get(), file.text, cat("write ", file.shown));
}

int run_init(Context& context, const InitOptions& options) {
  const auto files = files_to_make(context, options);
  if (!files) return misuse(context, files.error());
  if (!options.force) {
    if (const auto used = check_unused(*files)) return context.fail(*used);
  }
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  for (const NewFile& file : *files) {
    const auto made =
        options.force ? context.host.replace_file(file.path, file.text, 0644) : make(file);
    if (!made) return context.fail(made.error());
    names.push_back(file.shown);
    if (!context.json()) context.out << "wrote " << file.shown << '\n';
  }
  if (context.json()) print_json(context.out, {{"files", std::move(names)}});
  const std::string& name = files->front().shown;
  const std::string what = name == fusefile_names.front() ? "" : cat(" ", name);
  context.note(cat("next: fuse run", what, options.gpu ? "   which needs a host with a GPU" : "",
                   "\n      its image is made once: fuse image bake base"));
  return success;
}

}  // namespace

void add_init(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<InitOptions>();
  auto* init = app.add_subcommand("init", "Write a Fusefile to start from, and a .fuseignore");
  init->add_option("-f,--file", options->file.flag, "The file to write")->type_name("FILE");
  init->add_option("FUSEFILE", options->file.argument, "The file to write, or its folder")
      ->type_name("");
  init->add_flag("--gpu", options->gpu, "One that asks for a GPU");
  init->add_flag("--force", options->force, "Replace files that are there");
  init->callback([&invocation, options] {
    invocation.action = [&invocation, options] { return run_init(invocation.context, *options); };
  });
}

}  // namespace fuse::cmd
