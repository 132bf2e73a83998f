#pragma once

#include "base/clock.h"
#include "orchestrator/api/host_api.h"
#include "orchestrator/fleet_view.h"
#include "orchestrator/host_directory.h"
#include "orchestrator/store.h"

namespace fuse {

// The fleet over the database.
class HostService final : public HostApi {
 public:
  // `connect` makes the client that a registration is checked with.
  struct Options {
    ConnectAgent connect{};
    PlacementPolicy policy = PlacementPolicy::spread;
  };
  HostService(Store& store, HostDirectory& hosts, FleetView& fleet, Clock& clock, Options options)
      : store_(store), hosts_(hosts), fleet_(fleet), clock_(clock), options_(std::move(options)) {}

  Result<HostInfo> register_host(const RegisterHostRequest& request) override;
  Result<HostPage> list_hosts(std::int64_t limit, const std::string& cursor) override;
  Result<HostInfo> get_host(const std::string& id) override;
  Result<void> change_host(const std::string& id, HostAction action) override;
  Result<void> remove_host(const std::string& id) override;
  Result<Explanation> explain(const ResourceSpec& spec) override;

 private:
  [[nodiscard]] Result<HostCapacity> probe(const RegisterHostRequest& request) const;

  Store& store_;
  HostDirectory& hosts_;
  FleetView& fleet_;
  Clock& clock_;
  Options options_;
};

}  // namespace fuse
