#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fuse {

// The line breaks at the end of a scalar, which yaml-cpp drops in quotes and
// after `>+` and YAML does not.  Here `scalar` is the rest of a document from
// the scalar on, and lines end in \n.

// Where the scalar itself begins, of a node that begins at `offset` of `text`
// and may have a tag and an anchor.
std::string_view scalar_at(std::string_view text, std::size_t offset);

// The same token with a last `x`, of a scalar in quotes whose end is folded to
// line breaks: with a character behind them the parser takes them all.
std::optional<std::string> quoted_with_end(std::string_view scalar);

// How many line breaks the value of a `>+` scalar ends in, where blank lines
// stand at its end.  `parent_indent` is that of the mapping or list around it,
// -1 for none.
std::optional<std::size_t> kept_breaks(std::string_view scalar, int parent_indent);

}  // namespace fuse
