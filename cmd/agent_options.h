#pragma once

#include <memory>
#include <string>

#include "cmd/context.h"
#include "hostmode/devices/device_files.h"

namespace CLI {
class App;
}

namespace fuse::cmd {

// Where the files about this host's devices are: flags, else QEMU_DIR,
// VFIO_INVENTORY and MIG_INVENTORY, else /var/lib/fuse.
struct DeviceOptions {
  std::string dir{};
  std::string vfio_inventory{};
  std::string mig_inventory{};
};

std::shared_ptr<DeviceOptions> add_device_options(CLI::App& command);
// invalid_argument for a path that is not absolute.
Result<DevicePaths> device_paths(const Context& context, const DeviceOptions& options);

// Prints the error and returns its exit code.  A device of this machine that cannot be
// had is a failure, not a host that cannot be reached.
int fail_at_device(const Context& context, const Error& error);

}  // namespace fuse::cmd
