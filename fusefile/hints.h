#pragma once

#include <string>
#include <string_view>

namespace fuse {

// What to write instead of what was found, for the problems where that depends
// on the text.

// Of a key that is like none of its section: where it belongs, or what there is.
std::string hint_for_stranger(std::string_view name, std::string_view section);
std::string hint_for_flag(std::string_view text);
std::string hint_for_size(std::string_view text);
std::string hint_for_duration(std::string_view text);
// Of a variable of env that is given as NAME: TEXT.
std::string hint_for_env_text(std::string_view name, std::string_view text);
// Of a text that is no YAML, by the parser's message.
std::string_view hint_for_syntax(std::string_view message);

}  // namespace fuse
