#include "base/text.h"
#include "hostmode/device_release.h"
#include "hostmode/vm_keeper.h"

namespace fuse {

Result<void> VmKeeper::release(VmRecord& record) {
  if (record.devices.empty() || record.release) return {};
  const std::scoped_lock lock(release_mutex_);
  auto release = release_devices(world_.host, config_.devices, record.devices, world_.reset);
  if (!release) {
    return in_context(cat("take back the devices of vm ", record.vm_id), release.error());
  }
  release->at = to_rfc3339(world_.clock.wall());
  const std::string how = release_words(*release);
  if (release->grade == ReleaseGrade::quarantined) {
    world_.log.error("devices of a vm are set aside", {{"vm", record.vm_id}, {"release", how}});
  } else {
    world_.log.info("devices of a vm are free again", {{"vm", record.vm_id}, {"release", how}});
  }
  record.release = std::move(*release);
  return {};
}

Result<void> VmKeeper::release(Vm& vm) {
  VmRecord record = vm.record();
  if (record.devices.empty() || record.release) return {};
  if (auto released = release(record); !released) return released;
  if (auto written = write(vm, record); !written) {
    // In memory it is right; the next start takes them back once more.
    vm.set_record(record);
    world_.log.error("cannot write down that devices are free",
                     {{"vm", record.vm_id}, {"reason", written.error().message}});
  }
  return {};
}

// A QEMU that was never started has touched nothing.
Result<void> VmKeeper::take_back(const Vm& vm) {
  VmRecord record = vm.record();
  return record.process.pid == 0 ? Result<void>() : release(record);
}

}  // namespace fuse
