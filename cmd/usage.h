#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace fuse::cmd {

// What is wrong with a command line that was refused.
struct Misuse {
  std::string message{};       // in one line, with a suggestion where there is one
  std::string command{};       // the command it got to, "fuse environment exec"
  std::string command_name{};  // its last word, "" when there was none
};

// Finds out by walking the tree.  `fallback` is the parser's own message.
Misuse explain_misuse(const CLI::App& app, const std::vector<std::string>& arguments,
                      const std::string& fallback);

}  // namespace fuse::cmd
