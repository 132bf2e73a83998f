#pragma once

#include <optional>
#include <string_view>

#include "hostmode/mig/layout_plan.h"

namespace fuse {

// What a card can be cut into, by its PCI device id, for planning before MIG is
// switched on: until then nvidia-smi does not tell.  The card has the last word
// afterwards.  Nothing for a card that is not known here.
std::optional<CardSlots> known_slots(std::string_view device);

}  // namespace fuse
