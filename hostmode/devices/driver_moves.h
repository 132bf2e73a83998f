#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/host.h"
#include "base/result.h"
#include "base/write_apart.h"

namespace fuse {

// A function that is to get another driver.
struct DriverMove {
  std::string address{};
  // vfio-pci; or the driver of the host's own that it shall go back to, empty:
  // whichever the kernel finds for it.
  std::string to{};
};

// How files of the kernel are written that may take for ever: `unbind`, `remove`.
struct KernelWrites {
  WriteWithin write = write_apart;
  std::chrono::milliseconds limit{std::chrono::seconds(30)};
};

// Moves the functions one after another, in that order, by their driver_override;
// those that are there already stay.  All or none: when one fails, those moved
// before it are put back, and the error says so, or what could not be put back.
// details.stuck = ADDRESS of a function whose driver did not let go of it in time.
Result<void> move_drivers(Host& host, const std::vector<DriverMove>& moves,
                          const KernelWrites& writes);

// The driver that a function has now; empty: none.
std::string current_driver(Host& host, const std::string& address);

}  // namespace fuse
