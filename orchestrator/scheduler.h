#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "orchestrator/api/host_api.h"

namespace fuse {

// How many devices are free on a host, of any kind and profile.
struct FreeDevices {
  std::int64_t whole = 0;
  std::int64_t instances = 0;
};

// A host as a placement sees it: `info.allocated` is what is taken on it.
struct FleetHost {
  HostInfo info{};
  std::int64_t version = 0;           // of its row when it was looked at
  std::optional<FreeDevices> free{};  // where it was counted in advance
  WallTime seen{};                    // when its agent last answered
};

// Every registered host, ascending by id.
using Fleet = std::vector<FleetHost>;

// The devices are empty where the host's agent picks them.
struct Placement {
  std::string host_id{};
  std::int64_t host_version = 0;
  std::vector<std::string> gpu_device_uuids{};
  std::vector<std::string> mig_instance_uuids{};
};

enum class PlacementPolicy { spread, binpack };

struct Decision {
  std::optional<Placement> placement{};
  Error refusal{};                   // without a placement: what to answer
  std::vector<HostVerdict> hosts{};  // by explain alone
};

// Where `spec`, with its defaults filled in, goes.  Pure: the same fleet gives
// the same answer.  Reasons are put into words only when there is no place.
Decision place(const ResourceSpec& spec, const Fleet& fleet,
               PlacementPolicy policy = PlacementPolicy::spread);

// The same decision, with what it says about each host.
Decision explain(const ResourceSpec& spec, const Fleet& fleet,
                 PlacementPolicy policy = PlacementPolicy::spread);

// "amd64" for "", "x86_64" and "amd64"; "arm64" for "aarch64" too; else as it is.
std::string canonical_arch(const std::string& arch);

}  // namespace fuse
