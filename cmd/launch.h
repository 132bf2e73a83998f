#pragma once

#include <string>
#include <variant>

#include "cmd/context.h"
#include "cmd/fusefile_input.h"
#include "cmd/progress.h"
#include "cmd/secrets_input.h"
#include "orchestrator/api/types.h"

namespace CLI {
class App;
}

namespace fuse::cmd {

// What `up` and `run` have in common: a Fusefile that becomes an environment.
struct LaunchOptions {
  FusefileChoice file{};
  SecretOptions secrets{};
  SourceOptions sources{};
  std::string task_id{};
  bool dry_run = false;
  bool show_copy = false;
};

void add_launch_options(CLI::App& command, LaunchOptions& options);

struct Launch {
  FusefileText input{};
  Fusefile file{};
  CompiledFusefile compiled{};
  CreateEnvironmentRequest request{};  // with secrets; never shown
  LoadedSources sources{};
  TaskIdOrigin task_id_origin = TaskIdOrigin::flag;
};

// Reads, checks and compiles, or says on `err` why not and gives the exit code.
std::variant<Launch, ExitCode> prepare_launch(Context& context, const LaunchOptions& options);

// What is going to happen, in a few lines: what runs, with what, which values
// are defaults, and what becomes of the VM.
std::string plan_text(const Launch& launch, const std::string& where);

// Where the environment will be, in words: this machine, or a server.
std::string where_text(const Context& context);

// What `--dry-run` prints: the document of `fuse compile`.
void print_dry_run(const Context& context, const Launch& launch);

// The error of a create, with what can be done about it.
Error create_error(Error error, const Launch& launch);

// In which form the steps of a create are shown.
ProgressOptions progress_options(const Context& context);

}  // namespace fuse::cmd
