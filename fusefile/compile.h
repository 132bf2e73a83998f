#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fusefile/fusefile.h"
#include "fusefile/sources.h"
#include "orchestrator/api/types.h"

namespace fuse {

enum class TaskIdOrigin { flag, name, directory };

struct TaskId {
  std::string id{};
  TaskIdOrigin origin = TaskIdOrigin::flag;
};

// The task id: `flag` (--task-id) unless empty, else the file's name, else the
// name of the Fusefile's folder made into a DNS label, else "fuse-env".
TaskId task_id_of(std::string_view flag, const Fusefile& file, const fs::path& fusefile);

// A secret that has to be given, and where the file asks for it first.
struct RequiredSecret {
  std::string name{};
  Location where{};
};

// Sorted by name, each once.
std::vector<RequiredSecret> required_secrets_of(const Fusefile& file);

// A Fusefile as the request it stands for.
struct CompiledFusefile {
  // As an orchestrator that knows nothing of phases takes it; no secret values.
  CreateEnvironmentRequest request{};
  std::string manifest{};                       // what manifest_inline decodes to
  std::vector<std::string> required_secrets{};  // sorted, each once
};

// Pure.  A `files[].source` whose body is not in `sources` compiles to an empty
// file; `copied` is not used here.
CompiledFusefile compile(const Fusefile& file, std::string task_id,
                         const LoadedSources& sources = {});

// The request to send: the compiled one with the secrets' values and the files
// of `copy`; beside the startup script, unless startup_timeout is set, the same
// work as phases, with the entries of `files` as files of the request.
// payload_too_large when the files are more than one create takes.
Result<CreateEnvironmentRequest> to_send(const Fusefile& file, const CompiledFusefile& compiled,
                                         const LoadedSources& sources,
                                         std::map<std::string, std::string> secrets);

}  // namespace fuse
