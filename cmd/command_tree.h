#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fuse::cmd {

// Looks at the tree of commands without parsing anything.

// A name and what it does.
struct TreeEntry {
  std::string name{};
  std::string help{};
};

// The commands below `app` that are not hidden.
std::vector<const CLI::App*> shown_commands(const CLI::App& app);
// The same, with their aliases.
std::vector<TreeEntry> commands_of(const CLI::App& app);
// The long flags that `app` knows, those of the commands above it included.
std::vector<TreeEntry> flags_of(const CLI::App& app);

// A walk over the words of a command line: how far they lead into the tree.
class TreeWalk {
 public:
  explicit TreeWalk(const CLI::App& root) : at_(&root) {}

  // Goes on with a word.  What it means where it stands:
  enum class Word {
    command,          // the next command
    argument,         // of a command that has no commands below it
    flag,             // a known one
    flag_with_value,  // a known one, and the next word is its value
    value,            // of the flag before it
    unknown_command,
    unknown_flag,
  };
  Word take(const std::string& word);

  [[nodiscard]] const CLI::App& command() const { return *at_; }
  // "fuse environment exec"
  [[nodiscard]] std::string path() const;
  [[nodiscard]] bool awaits_value() const { return awaits_value_; }

 private:
  Word take_flag(const std::string& word);

  const CLI::App* at_;
  bool awaits_value_ = false;
};

}  // namespace fuse::cmd
