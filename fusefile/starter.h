#pragma once

#include <string>

namespace fuse {

// What `fuse init` writes: a Fusefile that is valid and runs as it stands, with
// every other key as a comment.  With `gpu` it asks for a GPU and shows it.
std::string starter_fusefile(bool gpu);

// The .fuseignore to go beside it.
std::string starter_ignore_file();

}  // namespace fuse
