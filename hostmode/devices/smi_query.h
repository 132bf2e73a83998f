#pragma once

#include <string>
#include <vector>

#include "base/command.h"
#include "base/host.h"
#include "hostmode/devices/smi_csv.h"

namespace fuse {

// Runs `nvidia-smi ARGUMENTS` and returns what it printed, whatever its exit
// status: it prints its refusals too.  not_found when the program is not there.
Result<CommandOutput> run_smi(Host& host, std::vector<std::string> arguments);

// What nvidia-smi says about the cards that it sees.  A card on vfio-pci is not
// among them: the driver cannot see it.
struct SmiView {
  bool there = false;  // the program could be run
  std::vector<SmiGpu> gpus{};
  std::vector<std::string> remarks{};  // what it said besides

  // The card at that address, or null.
  [[nodiscard]] const SmiGpu* find(const std::string& address) const;
};

// Asks for every field, and for fewer where an old driver does not know them.
SmiView query_smi(Host& host);

}  // namespace fuse
