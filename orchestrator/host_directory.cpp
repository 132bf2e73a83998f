#include "orchestrator/host_directory.h"

#include <optional>

#include "base/text.h"

namespace fuse {

namespace {

Error not_connected(const std::string& id) {
  return {ErrorCode::unreachable, cat("host ", id, " is not connected")};
}

}  // namespace

void HostDirectory::attach(const std::string& id, HostAgent agent, Users users) {
  known_.with([&](Known& known) {
    known.local.erase(id);
    known.local.emplace(id, std::move(agent));
    if (users == Users::we_alone) known.ours_alone.insert(id);
  });
}

bool HostDirectory::is_ours_alone(const std::string& id) const {
  return known_.with([&](const Known& known) { return known.ours_alone.count(id) != 0; });
}

bool HostDirectory::is_local(const std::string& id) const {
  return known_.with([&](const Known& known) { return known.local.count(id) != 0; });
}

Result<HostAgent> HostDirectory::find(const std::string& id) const {
  const bool silent = known_.with([&](const Known& known) { return known.silent.count(id) != 0; });
  if (silent) return Error{ErrorCode::unreachable, cat("host ", id, " does not answer")};
  return find_silent(id);
}

Result<HostAgent> HostDirectory::find_silent(const std::string& id) const {
  const auto local = known_.with([&](const Known& known) -> std::optional<HostAgent> {
    const auto found = known.local.find(id);
    return found == known.local.end() ? std::nullopt : std::optional(found->second);
  });
  if (local) return *local;
  if (!connect_) return not_connected(id);
  const auto row =
      transact<std::optional<HostRow>>(store_, [&](StoreTx& tx) { return tx.hosts.by_id(id); });
  if (!row) return row.error();
  if (!*row || (*row)->info.url.empty()) return not_connected(id);
  AgentAddress address{.host_id = id,
                       .url = (*row)->info.url,
                       .token = (*row)->token,
                       .backend = (*row)->info.backend};
  return known_.with([&](Known& known) -> Result<HostAgent> {
    const auto found = known.clients.find(id);
    if (found != known.clients.end() && found->second.address == address) {
      return found->second.agent;
    }
    auto made = connect_(address);
    if (!made) return in_context(cat("host ", id), made.error());
    if (found != known.clients.end()) known.clients.erase(found);
    known.clients.emplace(id, Client{std::move(address), *made});
    return made;
  });
}

HostDirectory::News HostDirectory::note(const std::string& id, bool answers) {
  return known_.with([&](Known& known) {
    const bool changed = answers ? known.silent.erase(id) != 0 : known.silent.insert(id).second;
    return changed ? News::yes : News::no;
  });
}

}  // namespace fuse
