#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuse {

// Which of `known` the `word` may be a misspelling of: those the fewest letters
// away, in any case, at most two and fewer than the longer of both has.  First
// the one that begins most like it.
std::vector<std::string_view> suggestions(std::string_view word,
                                          std::span<const std::string_view> known);

// `, did you mean "a" or "b"?`, or "" for none.
std::string did_you_mean(std::span<const std::string_view> names);

}  // namespace fuse
