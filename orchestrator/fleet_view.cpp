#include "orchestrator/fleet_view.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "orchestrator/gpu_choice.h"

namespace fuse {

namespace {

// Three missed polls of ten seconds.
constexpr std::chrono::seconds silence{30};
constexpr std::chrono::seconds recently{1};

// What is taken on the host, by whatever lives there.
Result<HostCapacity> allocated_on(StoreTx& tx, const std::string& host_id) {
  const auto reserved = tx.reservations.on_host(host_id);
  if (!reserved) return reserved.error();
  HostCapacity used;
  for (const ReservationSum& sum : *reserved) {
    used.cpus += sum.cpus;
    used.ram_mb += sum.ram_mb;
    used.storage_gb += sum.storage_gb;
    used.vm_count += sum.environments;
    if (sum.gpu_profile.empty()) used.gpus += sum.gpus;
    if (!sum.gpu_profile.empty()) used.mig_profiles[sum.gpu_profile] += sum.gpus;
  }
  const auto bindings = tx.bindings.on_host(host_id);
  if (!bindings) return bindings.error();
  for (const BindingRow& binding : *bindings) {
    auto& uuids = binding.kind == DeviceKind::mig ? used.mig_instance_uuids : used.gpu_device_uuids;
    uuids.push_back(binding.device_uuid);
  }
  return used;
}

// Nothing when there is no such host any more.
Result<std::optional<FleetHost>> read_host(StoreTx& tx, const std::string& id) {
  auto row = tx.hosts.by_id(id);
  if (!row) return row.error();
  if (!*row) return std::optional<FleetHost>();
  auto allocated = allocated_on(tx, id);
  if (!allocated) return allocated.error();
  FleetHost host{.info = (*row)->info, .version = (*row)->version};
  host.info.allocated = *std::move(allocated);
  host.free = count_free(host.info);
  return std::optional<FleetHost>(std::move(host));
}

const std::string& id_of(const FleetHost& host) {
  return host.info.id;
}

// The hosts that `marks` names, those that are known as they are.
Fleet in_order(Fleet fleet, const std::vector<HostTable::Mark>& marks) {
  if (std::ranges::equal(fleet, marks, {}, id_of, &HostTable::Mark::id)) return fleet;
  Fleet out(marks.size());
  auto known = fleet.begin();
  for (std::size_t at = 0; at < marks.size(); ++at) {
    while (known != fleet.end() && id_of(*known) < marks[at].id) ++known;
    if (known != fleet.end() && id_of(*known) == marks[at].id) out[at] = std::move(*known);
  }
  return out;
}

}  // namespace

// What a look found: every host, and those to be replaced, by their place among
// them.
struct FleetView::News {
  std::vector<HostTable::Mark> marks{};
  std::map<std::size_t, FleetHost> read{};
};

Result<FleetView::News> FleetView::read_news(const Fleet& fleet) {
  return transact<News>(store_, [&](StoreTx& tx) -> Result<News> {
    const auto marks = tx.hosts.marks();
    if (!marks) return marks.error();
    News news;
    auto known = fleet.begin();
    for (const HostTable::Mark& mark : *marks) {
      while (known != fleet.end() && id_of(*known) < mark.id) ++known;
      const bool same =
          known != fleet.end() && id_of(*known) == mark.id && known->version == mark.version;
      if (!same) {
        auto host = read_host(tx, mark.id);
        if (!host) return host.error();
        if (!*host) continue;
        news.read[news.marks.size()] = **std::move(host);
      }
      news.marks.push_back(mark);
    }
    return news;
  });
}

// An agent in this process is as reachable as we are.
void FleetView::set_seen(FleetHost& host, WallTime seen) const {
  host.info.reachable = directory_.is_local(host.info.id) || clock_.wall() - seen < silence;
  if (host.seen == seen && !host.info.last_seen.empty()) return;
  host.seen = seen;
  host.info.last_seen = to_rfc3339(seen);
}

// Not all when one of them is new or gone, which takes a look at every host.
Result<FleetView::Found> FleetView::read_changed(Known& known) {
  for (const std::string& id : known.changed) {
    const auto place = std::ranges::lower_bound(known.fleet, id, {}, id_of);
    if (place == known.fleet.end() || id_of(*place) != id) return Found::not_all;
    auto host =
        transact<std::optional<FleetHost>>(store_, [&](StoreTx& tx) { return read_host(tx, id); });
    if (!host) return host.error();
    if (!*host) return Found::not_all;
    const WallTime seen = place->seen;
    *place = **std::move(host);
    set_seen(*place, seen);
  }
  known.changed.clear();
  return Found::all;
}

Result<void> FleetView::bring_up_to_date(Known& known, Look look) {
  if (look == Look::recent && known.looked && clock_.steady() - *known.looked < recently) {
    const auto found = read_changed(known);
    if (!found) return found.error();
    if (*found == Found::all) return {};
  }
  auto news = read_news(known.fleet);
  if (!news) return news.error();
  known.fleet = in_order(std::move(known.fleet), news->marks);
  for (auto& [at, host] : news->read) known.fleet[at] = std::move(host);
  for (std::size_t at = 0; at < news->marks.size(); ++at) {
    set_seen(known.fleet[at], news->marks[at].seen);
  }
  known.changed.clear();
  known.looked = clock_.steady();
  return {};
}

void FleetView::note_change(const std::string& host_id) {
  known_.with([&](Known& known) { known.changed.insert(host_id); });
}

}  // namespace fuse
