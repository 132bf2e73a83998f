#include "hostmode/agent.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "hostmode/capacity.h"
#include "hostmode/device_pool.h"

namespace fuse {

Result<std::unique_ptr<Agent>> Agent::start(AgentWorld world, AgentConfig config) {
  if (auto user = find_qemu_user(world.host, config.qemu_user, ::geteuid()); !user) {
    return user.error();
  }
  std::unique_ptr<Agent> agent(new Agent(std::move(world), std::move(config)));
  if (auto recovered = agent->keeper_.recover(); !recovered) return recovered.error();
  Agent* const self = agent.get();
  agent->housekeeper_ = std::jthread([self](std::stop_token stop) { self->keep_house(stop); });
  return agent;
}

Agent::~Agent() = default;

void Agent::keep_house(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    woken_.wait_for(lock, stop, keeper_.config().housekeeping, [] { return false; });
    if (!stop.stop_requested()) keeper_.tidy();
  }
}

Result<HostCapacity> Agent::capacity() {
  auto capacity = read_capacity(keeper_.world().host, keeper_.paths().root());
  if (!capacity) return capacity;
  capacity->cpus *= keeper_.config().cpu_share;
  const auto pool =
      read_device_pool(keeper_.world().host, keeper_.config().devices, InventoryDepth::bus);
  if (!pool) return pool.error();
  add_devices(*capacity, *pool);
  return capacity;
}

Result<VmInfo> Agent::create_vm(const CreateVmRequest& request) {
  auto vm = keeper_.create(request);
  if (!vm) return vm;
  // A VM without an address of its own is one that exec and jobs still reach.
  if (auto published = publish(*vm); !published) {
    keeper_.world().log.warning("a vm has no address",
                                {{"vm", vm->vm_id}, {"reason", published.error().message}});
  }
  return with_address(*std::move(vm));
}

Result<VmInfo> Agent::get_vm(const std::string& vm_id) {
  const auto vm = keeper_.find(vm_id);
  if (vm) return with_address((*vm)->info());
  const auto held = keeper_.set_aside(vm_id);
  if (!held || held->newer) return vm.error();
  // Whatever still runs of it, nobody can do anything with it but end it.
  return VmInfo{.vm_id = held->uid,
                .uid = held->uid,
                .alive = false,
                .ended = cat("it is set aside: ", held->reason)};
}

Result<std::vector<VmInfo>> Agent::list_vms(const std::string& prefix) {
  std::vector<VmInfo> out;
  for (const auto& vm : keeper_.table().all()) {
    if (vm->phase() == Vm::Phase::creating) continue;
    VmInfo info = vm->info();
    if (info.vm_id.starts_with(prefix)) out.push_back(with_address(std::move(info)));
  }
  return out;
}

Result<void> Agent::destroy_vm(const std::string& vm_id) {
  return keeper_.destroy(vm_id);
}

std::set<fs::path> Agent::images_in_use() const {
  std::set<fs::path> files;
  for (const auto& vm : keeper_.table().all()) {
    const BootImage image = vm->record().image;
    for (const std::string& file : {image.kernel, image.initrd, image.disk}) {
      if (!file.empty()) files.insert(file);
    }
  }
  return files;
}

std::set<std::string> Agent::devices_in_use() const {
  std::set<std::string> uuids;
  for (const auto& vm : keeper_.table().all()) {
    const VmRecord has = vm->record();
    if (has.release) continue;
    for (const VmDevice& device : has.devices) {
      if (!device.uuid.empty()) uuids.insert(device.uuid);
    }
  }
  return uuids;
}

std::size_t Agent::alive() const {
  const auto all = keeper_.table().all();
  return static_cast<std::size_t>(
      std::ranges::count_if(all, [](const auto& vm) { return vm->info().alive; }));
}

}  // namespace fuse
