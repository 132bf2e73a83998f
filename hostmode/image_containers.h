#pragma once

#include <string>
#include <vector>

#include "hostmode/image_kernel.h"

// What an image needs beside the usual so that services run in it: podman with
// podman-compose, which need no daemon and no init of their own.
namespace fuse {

// Debian packages; only what these depend on comes with them.
std::vector<std::string> container_packages();
// Modules: layers of images, a network of their own for containers, and the rules
// that lead ports into it.
std::vector<WantedModule> container_modules();
// Shell commands that settle podman in the root file system "$1".
std::vector<std::string> container_hooks();

}  // namespace fuse
