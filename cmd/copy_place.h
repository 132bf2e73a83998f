#pragma once

#include <string>
#include <string_view>

#include "base/host.h"
#include "base/result.h"

namespace fuse::cmd {

// One end of a copy, as it is written: PATH, ID:/PATH, or - for our own stdin and
// stdout.
struct CopyPlace {
  std::string id{};  // of the environment; empty: this machine
  std::string path{};
  bool contents = false;      // PATH/. : what is in the folder, not the folder
  bool wants_folder = false;  // PATH/
  [[nodiscard]] bool is_stream() const { return id.empty() && path == "-"; }
};

// A colon behind an id makes it an environment's; ./a:b is a file of that name.
// invalid_argument for paths that are none.
Result<CopyPlace> parse_copy_place(const std::string& text);

// The last name of a path; empty when it has none: "/".
std::string last_name(std::string_view path);
// What it lies in: "/a" for "/a/b", "/" for "/a".
std::string parent_of(std::string_view path);
// `name` in the folder `path`.
std::string below(std::string_view path, std::string_view name);

// What there is at a path.
enum class CopyKind {
  file,
  folder,
  other,      // a device, a socket, a pipe
  dangling,   // a symbolic link that leads nowhere
  none,       // but the folder that it would be in is there
  no_folder,  // not even that
};

// Where a file or folder called `name` goes when it is copied to `to`, at which
// there is `kind`; or why it cannot.  `where` names the side in messages.
Result<std::string> copy_target(const CopyPlace& to, CopyKind kind, bool source_is_folder,
                                std::string_view name);

}  // namespace fuse::cmd
