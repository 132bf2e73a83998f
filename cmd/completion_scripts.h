#pragma once

#include <array>
#include <string_view>

namespace fuse::cmd {

// The files of completions/, which the build puts into the executable.  Each asks
// `fuse complete-words` for what can stand in place of the last word, and falls
// back to names of files.
struct CompletionScript {
  std::string_view shell;
  std::string_view text;
};
extern const std::array<CompletionScript, 3> completion_scripts;

}  // namespace fuse::cmd
