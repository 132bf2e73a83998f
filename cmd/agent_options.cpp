#include "cmd/agent_options.h"

#include <CLI/CLI.hpp>

#include "base/text.h"

namespace fuse::cmd {

namespace {

Result<fs::path> absolute_of(const Context& context, const std::string& flag,
                             const std::string& variable, const std::string& value) {
  const fs::path path = value.empty() ? context.variables(variable).value_or("") : value;
  if (path.empty() || path.is_absolute()) return path.lexically_normal();
  return Error{ErrorCode::invalid_argument,
               cat(value.empty() ? variable : flag, " must be an absolute path, got \"",
                   path.native(), "\"")};
}

}  // namespace

std::shared_ptr<DeviceOptions> add_device_options(CLI::App& command) {
  auto options = std::make_shared<DeviceOptions>();
  command.add_option("--dir", options->dir, "Folder of the device files (QEMU_DIR)")
      ->type_name("DIR");
  command
      .add_option("--vfio-inventory", options->vfio_inventory,
                  "The inventory of whole devices (VFIO_INVENTORY)")
      ->type_name("FILE");
  command
      .add_option("--mig-inventory", options->mig_inventory,
                  "The inventory of MIG instances (MIG_INVENTORY)")
      ->type_name("FILE");
  return options;
}

Result<DevicePaths> device_paths(const Context& context, const DeviceOptions& options) {
  const auto dir = absolute_of(context, "--dir", "QEMU_DIR", options.dir);
  if (!dir) return dir.error();
  const auto vfio =
      absolute_of(context, "--vfio-inventory", "VFIO_INVENTORY", options.vfio_inventory);
  if (!vfio) return vfio.error();
  const auto mig = absolute_of(context, "--mig-inventory", "MIG_INVENTORY", options.mig_inventory);
  if (!mig) return mig.error();
  return DevicePaths{.dir = dir->empty() ? fs::path("/var/lib/fuse") : *dir,
                     .vfio_inventory = *vfio,
                     .mig_inventory = *mig};
}

int fail_at_device(const Context& context, const Error& error) {
  const int code = context.fail(error);
  return code == not_reached ? failed : code;
}

}  // namespace fuse::cmd
