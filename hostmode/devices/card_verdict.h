#pragma once

#include <string>
#include <string_view>

#include "hostmode/devices/inventory.h"

namespace fuse {

// Decides how each card of the group stands, and why.
void judge_group(CardGroup& group, const DeviceFiles& files, const CardEvidence& evidence);

// Why the group cannot be handed over whatever its drivers are: it has foreign
// members, members that cannot be read, or is none.  "" when it can.
std::string group_objection(const GpuGroupScan& group);

// Whether two spellings mean one card.
[[nodiscard]] bool same_card(std::string_view a, std::string_view b);

}  // namespace fuse
