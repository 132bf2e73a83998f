#pragma once

#include <string>

#include "fusefile/fusefile.h"
#include "fusefile/sources.h"
#include "orchestrator/api/types.h"

namespace fuse {

// The bytes of files[index]; "" for a source that was not read.
std::string file_body(const Fusefile& file, std::size_t index, const LoadedSources& sources);

// Everything that a Fusefile does in the guest as one sh script, or "" when
// that is nothing: its files, its build steps, its run.
std::string startup_script(const Fusefile& file, const LoadedSources& sources);

// The build steps and the run apart, each a script that needs nothing of the
// others.
Phases phases_of(const Fusefile& file);

}  // namespace fuse
