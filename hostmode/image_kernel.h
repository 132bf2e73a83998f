#pragma once

#include <span>
#include <string>
#include <vector>

#include "hostmode/image_packages.h"

namespace fuse {

// A kernel taken out of its package.
struct FetchedKernel {
  std::string version{};  // "6.1.0-57-cloud-amd64"
  fs::path image{};       // vmlinuz
  fs::path modules{};     // folder with modules.builtin and kernel/
};

// Fetches the distribution's kernel for virtual machines.
Result<FetchedKernel> fetch_kernel(PackageFetcher& packages, const Distribution& distribution);

// Unpacks the kernel to a file in `work`; "" when QEMU could not enter it, or it
// is packed in a way that is not known.
Result<fs::path> unpack_kernel(BakeSteps& unpacker, const fs::path& work,
                               const FetchedKernel& kernel);

// A module that an image loads at its start.
struct WantedModule {
  std::string name{};
  bool optional = false;  // some kernels lack it, and the guest does without
};

// What a guest loads, in this order: the channel first, since everything waits
// for it.  With a disk also what reads the disk.
std::vector<WantedModule> guest_modules(bool with_disk);

// The archive with those modules and what they depend on, unpacked, in
// /lib/modules, and their paths one a line in the order of loading in
// /lib/modules/fuse.order.  Modules that are built into the kernel are left out;
// one that it lacks is an error.  `unpacker` runs steps for packed modules.
Result<std::string> module_archive(BakeSteps& unpacker, const fs::path& work,
                                   const FetchedKernel& kernel,
                                   std::span<const WantedModule> wanted);

}  // namespace fuse
