#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace fuse::cmd {

struct ManualPage {
  std::string name{};
  int section = 1;
  std::string text{};  // roff
};

// The manual, made from the tree of commands: fuse(1), a page for each command that
// takes something of its own, and Fusefile(5).  Agent and orchestrator, which an
// administrator runs, are in section 8.
std::vector<ManualPage> manual_of(const CLI::App& root);

// The page of the format, made from the table of its keys.
ManualPage fusefile_page();

}  // namespace fuse::cmd
