#include "orchestrator/host_service.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "orchestrator/page_cursor.h"
#include "orchestrator/registration.h"
#include "orchestrator/scheduler.h"
#include "orchestrator/validate.h"

namespace fuse {

namespace {

Error no_such_host(const std::string& id) {
  return {ErrorCode::not_found, cat("host not found: ", id)};
}

HostState state_after(HostAction action) {
  switch (action) {
    case HostAction::cordon:
      return HostState::cordoned;
    case HostAction::drain:
      return HostState::draining;
    case HostAction::uncordon:
      break;
  }
  return HostState::active;
}

// The row of a host as it is registered now.  Whether it takes work stays as it was.
HostRow registered_row(const RegisterHostRequest& request, const Registration& registration,
                       const std::optional<HostRow>& known, WallTime now) {
  HostRow row = known.value_or(HostRow());
  if (!known) row.info.created_at = to_rfc3339(now);
  row.info.id = request.id;
  row.info.url = request.url;
  row.info.backend = request.backend;
  row.info.region = request.region;
  row.info.labels = request.labels;
  row.info.arch = registration.capacity.arch;
  row.info.capacity = registration.capacity;
  row.info.updated_at = to_rfc3339(now);
  row.declared = request.capacity;
  row.token = request.token;
  row.seen = now;
  return row;
}

}  // namespace

Result<HostCapacity> HostService::probe(const RegisterHostRequest& request) const {
  if (!options_.connect)
    return Error{ErrorCode::unreachable, "hosts elsewhere are not supported here"};
  const auto agent = options_.connect({.host_id = request.id,
                                       .url = request.url,
                                       .token = request.token,
                                       .backend = request.backend});
  if (!agent) return agent.error();
  return agent->vms.capacity();
}

Result<HostInfo> HostService::register_host(const RegisterHostRequest& given) {
  auto checked = checked_registration(given);
  if (!checked) return checked.error();
  const RegisterHostRequest& request = *checked;
  if (hosts_.is_local(request.id)) {
    return Error{ErrorCode::conflict, cat("host ", request.id, " is this process itself")};
  }
  const auto probed = probe(request);
  const auto registration = register_with(request, probed);
  if (!registration) return registration.error();
  auto entered = store_.run([&](StoreTx& tx) -> Result<void> {
    const auto known = tx.hosts.to_change(request.id);
    if (!known) return known.error();
    const HostRow row = registered_row(request, *registration, *known, clock_.wall());
    return known->has_value() ? tx.hosts.update(row) : tx.hosts.insert(row);
  });
  if (!entered) return entered.error();
  (void)hosts_.note(request.id, probed.has_value());
  auto info = get_host(request.id);
  if (info) info->warnings = registration->warnings;
  return info;
}

Result<HostPage> HostService::list_hosts(std::int64_t limit, const std::string& cursor) {
  const auto after = decode_cursor(cursor);
  if (!after) return after.error();
  const auto size = static_cast<std::size_t>(page_size(limit));
  return fleet_.use(FleetView::Look::fresh, [&](const Fleet& fleet) {
    HostPage page;
    for (const FleetHost& host : fleet) {
      if (host.info.id <= after->id) continue;
      if (page.hosts.size() == size) {
        page.next_cursor = encode_cursor({.id = page.hosts.back().id});
        break;
      }
      page.hosts.push_back(host.info);
    }
    return page;
  });
}

Result<HostInfo> HostService::get_host(const std::string& id) {
  const auto found = fleet_.use(FleetView::Look::fresh, [&](const Fleet& fleet) {
    const auto host =
        std::ranges::find_if(fleet, [&](const FleetHost& one) { return one.info.id == id; });
    return host == fleet.end() ? std::optional<HostInfo>() : host->info;
  });
  if (!found) return found.error();
  if (!*found) return no_such_host(id);
  return **found;
}

Result<void> HostService::change_host(const std::string& id, HostAction action) {
  return store_.run([&](StoreTx& tx) -> Result<void> {
    auto row = tx.hosts.to_change(id);
    if (!row) return row.error();
    if (!*row) return no_such_host(id);
    (*row)->info.state = state_after(action);
    (*row)->info.updated_at = to_rfc3339(clock_.wall());
    return tx.hosts.update(**row);
  });
}

Result<void> HostService::remove_host(const std::string& id) {
  if (hosts_.is_local(id)) {
    return Error{ErrorCode::conflict, cat("host ", id, " is this process itself")};
  }
  return store_.run([&](StoreTx& tx) -> Result<void> {
    const auto row = tx.hosts.to_change(id);
    if (!row) return row.error();
    if (!*row) return no_such_host(id);
    const auto live = tx.environments.live_on(id);
    if (!live) return live.error();
    if (!live->empty()) {
      std::vector<std::string> ids;
      for (const EnvironmentRow& one : *live) ids.push_back(one.environment.id);
      return Error{ErrorCode::conflict, cat("host still has vms assigned: ", join(ids, ", "))};
    }
    return tx.hosts.remove(id);
  });
}

Result<Explanation> HostService::explain(const ResourceSpec& spec) {
  const CreateEnvironmentRequest request = with_defaults({.task_id = "explain", .spec = spec});
  const auto host_exists = [](const std::string& /*id*/) -> Result<void> { return {}; };
  if (auto valid = validate(request, {.host_exists = host_exists}); !valid) return valid.error();
  return fleet_.use(FleetView::Look::fresh, [&](const Fleet& fleet) {
    Decision decision = fuse::explain(request.spec, fleet, options_.policy);
    Explanation out{.message = std::move(decision.refusal.message),
                    .hosts = std::move(decision.hosts)};
    if (decision.placement) out.host_id = decision.placement->host_id;
    return out;
  });
}

}  // namespace fuse
