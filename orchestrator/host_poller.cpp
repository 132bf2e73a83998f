#include "orchestrator/host_poller.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <vector>

#include "orchestrator/api/json.h"
#include "orchestrator/json_text.h"
#include "orchestrator/registration.h"

namespace fuse {

namespace {

constexpr std::size_t asked_at_a_time = 16;

std::set<std::string> device_uuids(const HostCapacity& capacity) {
  std::set<std::string> out;
  for (const GpuDevice& device : capacity.gpu_devices) out.insert(device.uuid);
  for (const MigInstance& instance : capacity.mig_instances) out.insert(instance.uuid);
  return out;
}

}  // namespace

void HostPoller::pass() {
  const auto marks =
      transact<std::vector<HostTable::Mark>>(store_, [](StoreTx& tx) { return tx.hosts.marks(); });
  if (!marks) {
    log_.error("cannot read the hosts", {{"error", marks.error().message}});
    return;
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t at = next++; at < marks->size(); at = next++) ask((*marks)[at].id);
  };
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < std::min(asked_at_a_time, marks->size()); ++i) {
    helpers.emplace_back(work);
  }
  work();
}

void HostPoller::ask(const std::string& id) {
  const auto agent = hosts_.find_silent(id);
  const auto capacity = agent ? agent->vms.capacity() : Result<HostCapacity>(agent.error());
  const auto news = hosts_.note(id, capacity.has_value());
  if (!capacity) {
    if (news == HostDirectory::News::yes) {
      log_.warning("a host does not answer", {{"host", id}, {"error", capacity.error().message}});
    }
    return;
  }
  if (news == HostDirectory::News::yes) log_.info("a host answers again", {{"host", id}});
  if (auto done = refresh(id, *capacity); !done) {
    log_.error("cannot note what a host has", {{"host", id}, {"error", done.error().message}});
  }
}

Result<void> HostPoller::refresh(const std::string& id, const HostCapacity& probed) {
  return store_.run([&](StoreTx& tx) -> Result<void> {
    auto row = tx.hosts.to_change(id);
    if (!row) return row.error();
    if (!*row) return {};
    HostCapacity fresh = merged_capacity((*row)->declared, probed);
    if (json_text(to_json(fresh)) == json_text(to_json((*row)->info.capacity))) {
      return tx.hosts.note_seen(id, clock_.wall());
    }
    const auto bound = tx.bindings.on_host(id);
    if (!bound) return bound.error();
    const auto present = device_uuids(fresh);
    for (const BindingRow& binding : *bound) {
      if (present.count(binding.device_uuid) != 0) continue;
      log_.error("a device that is in use has vanished",
                 {{"host", id}, {"device", binding.device_uuid}});
    }
    (*row)->info.capacity = std::move(fresh);
    (*row)->info.updated_at = to_rfc3339(clock_.wall());
    (*row)->seen = clock_.wall();
    return tx.hosts.update(**row);
  });
}

}  // namespace fuse
