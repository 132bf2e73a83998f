#pragma once

#include <vector>

#include "base/metrics.h"
#include "orchestrator/api/host_api.h"

namespace fuse {

// Everything that an orchestrator counts.
std::vector<MetricInfo> orchestrator_metrics();

// Sets what follows from the fleet as it is: hosts by state, amounts and devices
// that are free and used.
void measure_fleet(const std::vector<HostInfo>& hosts, Metrics& metrics);

}  // namespace fuse
