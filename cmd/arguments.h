#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

// What several commands take alike, checked while the line is read.
namespace fuse::cmd {

// The environment that a command is about, by its id, its uid or its task.
CLI::Option* add_environment_id(CLI::App& command, std::string& id);
CLI::Option* add_environment_ids(CLI::App& command, std::vector<std::string>& ids);

// A whole number, `least` or more.
CLI::Option* must_be_at_least(CLI::Option* option, std::int64_t least);
CLI::Option* must_be_one_of(CLI::Option* option, std::initializer_list<std::string_view> values);

}  // namespace fuse::cmd
