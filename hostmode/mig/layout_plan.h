#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace fuse {

// A profile of a card: how much of it an instance takes, and where it may begin.
// A card is cut twice at once: into compute slices, of which there are only so
// many, and along a grid of memory, where only some places are legal.
struct SlotProfile {
  std::string name{};
  int id = 0;      // nvidia-smi's
  int slices = 0;  // compute
  int size = 0;    // on the grid
  std::vector<int> starts{};
  int most = 0;  // instances of it on one card
};

// An instance that is there.
struct SlotUse {
  std::string profile{};
  int slices = 0;
  int start = 0;
  int size = 0;
};

struct CardSlots {
  std::string card{};  // address
  int slices = 0;      // compute slices of the whole card
  std::vector<SlotProfile> profiles{};
  std::vector<SlotUse> used{};
};

// So many instances of a profile, those that are there already included.
struct LayoutWish {
  std::string profile{};
  int count = 0;
};

// An instance to be made.
struct SlotChoice {
  std::size_t card = 0;  // index
  SlotProfile profile{};
  int start = 0;
};

// Finds places for what is missing, on as few cards as possible and on the first
// ones: if there is any way to place it all, one is found.  Nothing that is there
// is moved.  unavailable (details.reason "placement"), saying for every card what
// is in the way, when it cannot be.
Result<std::vector<SlotChoice>> plan_layout(const std::vector<LayoutWish>& wishes,
                                            const std::vector<CardSlots>& cards);

// The card's own profile that a name means; null when it has none.
const SlotProfile* find_profile(const CardSlots& card, const std::string& wanted);

// "1g.10gb at 0, 1g.10gb at 1"; "nothing" for an empty card.
std::string uses_words(const std::vector<SlotUse>& uses);

}  // namespace fuse
