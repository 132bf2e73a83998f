#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/context.h"
#include "fusefile/compile.h"
#include "fusefile/diagnostics.h"
#include "fusefile/fusefile.h"
#include "fusefile/sources.h"

namespace CLI {
class App;
}

namespace fuse::cmd {

// What a Fusefile is called when nobody says; the first one that is there.
constexpr std::array<std::string_view, 5> fusefile_names = {
    "Fusefile", "Fusefile.yaml", "Fusefile.yml", "fusefile.yaml", "fusefile.yml"};

// Which Fusefile a command is about, as the command line says it.
struct FusefileChoice {
  std::string flag{};      // -f
  std::string argument{};  // the positional
};

void add_fusefile_choice(CLI::App& command, FusefileChoice& choice);

// `--task-id`, which has to be fit for a name like the file's own.
void add_task_id(CLI::App& command, std::string& task_id);

struct FusefileText {
  std::string shown{};  // as the user named it, or found it
  fs::path path{};      // absolute
  std::string text{};
};

// Finds and reads it: the flag, else the argument, else the first of the five
// names that is there.  The message says what to do.
Result<FusefileText> read_fusefile(Context& context, const FusefileChoice& choice);

// What a Fusefile came to: with `file` and without errors, or with diagnostics.
struct LoadedFusefile {
  std::optional<Fusefile> file{};
  std::vector<RequiredSecret> required_secrets{};  // as far as it was understood
  LoadedSources sources{};
  Diagnostics diagnostics{};
  [[nodiscard]] bool ok() const { return file.has_value() && diagnostics.ok(); }
};

// With everything that the Fusefile names, also where it has problems itself.
LoadedFusefile load_fusefile(const FusefileText& input, const SourceOptions& options);

// The compiled file as it is shown to people: with the files of `copy`.
CompiledFusefile with_copied_files(CompiledFusefile compiled, const LoadedSources& sources);

// The diagnostics on `err`, each with its line and a caret.
void print_diagnostics(const Context& context, const FusefileText& input,
                       const Diagnostics& diagnostics);

}  // namespace fuse::cmd
