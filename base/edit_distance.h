#pragma once

#include <cstddef>
#include <string_view>

namespace fuse {

// How many letters have to be added, left out, replaced or exchanged with their
// neighbour to make `b` out of `a` (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace fuse
