#include "hostmode/devices/driver_moves.h"

#include "base/text.h"
#include "hostmode/devices/pci_device.h"

namespace fuse {

namespace {

// What a function was before it was touched.
struct Before {
  std::string address{};
  std::string driver{};
  std::string driver_override{};  // empty: none
};

class Mover {
 public:
  Mover(Host& host, const KernelWrites& writes) : host_(host), writes_(writes) {}

  Result<void> apply(const DriverMove& move) {
    const bool to_vfio = move.to == vfio_driver;
    if (auto set = set_override(move.address, to_vfio ? move.to : ""); !set) return set;
    const std::string now = current_driver(host_, move.address);
    if (!now.empty() && (now == move.to || (move.to.empty() && now != vfio_driver))) return {};
    if (auto freed = unbind(move.address); !freed) return freed;
    return bind(move.address, move.to);
  }

  Result<void> restore(const Before& before) {
    if (auto set = set_override(before.address, before.driver_override); !set) return set;
    if (current_driver(host_, before.address) == before.driver) return {};
    if (auto freed = unbind(before.address); !freed) return freed;
    // One that had no driver gets none: probing would find it one.
    return before.driver.empty() ? Result<void>() : bind(before.address, before.driver);
  }

  Result<Before> look(const std::string& address) {
    const auto text = host_.read_file(override_file(address));
    if (!text) return text.error();
    const std::string value(trim(*text));
    return Before{address, current_driver(host_, address), value == "(null)" ? "" : value};
  }

 private:
  static fs::path override_file(const std::string& address) {
    return fs::path(pci_devices_dir) / address / "driver_override";
  }

  // A write about that function that may not come back.
  Result<void> slowly(const fs::path& file, const std::string& address) {
    auto done = writes_.write(file, address, writes_.limit);
    if (done || done.error().code != ErrorCode::unavailable) return done;
    Error error = done.error();
    error.details["stuck"] = address;
    return error;
  }

  Result<void> set_override(const std::string& address, const std::string& driver) {
    return host_.write_file(override_file(address), driver.empty() ? "\n" : driver);
  }

  Result<void> unbind(const std::string& address) {
    const std::string driver = current_driver(host_, address);
    if (driver.empty()) return {};
    auto done = slowly(fs::path(pci_drivers_dir) / driver / "unbind", address);
    if (done || done.error().code != ErrorCode::unavailable) return done;
    return in_context(cat(driver, " does not let go of it"), done.error());
  }

  // The kernel reports success for a probe that failed, so the link tells.
  Result<void> bind(const std::string& address, const std::string& driver) {
    auto probed = slowly("/sys/bus/pci/drivers_probe", address);
    if (!probed) return probed;
    if (driver.empty() || current_driver(host_, address) == driver) return {};
    if (driver != vfio_driver) {
      auto bound = slowly(fs::path(pci_drivers_dir) / driver / "bind", address);
      if (!bound) return bound;
      if (current_driver(host_, address) == driver) return {};
    }
    const std::string now = current_driver(host_, address);
    return Error{ErrorCode::internal,
                 cat(driver, " did not take it (now ", now.empty() ? "no driver" : now, ")"),
                 {{"hint", "the kernel's log says why: dmesg | tail"}}};
  }

  Host& host_;
  const KernelWrites& writes_;
};

// Puts everything back, the last first, and says in the error how that went.
Error undo(Mover& mover, const std::vector<Before>& touched, Error error) {
  std::vector<std::string> lost;
  for (auto before = touched.rbegin(); before != touched.rend(); ++before) {
    if (auto restored = mover.restore(*before); !restored) {
      lost.push_back(cat(before->address, " (", restored.error().message, ")"));
    }
  }
  if (!lost.empty()) {
    error.message += cat("; and could not be put back: ", join(lost, ", "));
  } else if (touched.size() > (error.details.contains("stuck") ? 0U : 1U)) {
    error.message += "; the others of the group were put back";
  }
  return error;
}

}  // namespace

std::string current_driver(Host& host, const std::string& address) {
  const auto link = host.read_link(fs::path(pci_devices_dir) / address / "driver");
  return link ? link->filename().native() : "";
}

Result<void> move_drivers(Host& host, const std::vector<DriverMove>& moves,
                          const KernelWrites& writes) {
  Mover mover(host, writes);
  std::vector<Before> touched;
  for (const DriverMove& move : moves) {
    auto before = mover.look(move.address);
    if (!before) return undo(mover, touched, in_context(move.address, before.error()));
    touched.push_back(std::move(*before));
    if (auto moved = mover.apply(move); !moved) {
      // The kernel holds the lock of a function that is stuck: whoever touches it, even
      // to look at its driver_override, is stuck too.
      if (moved.error().details.contains("stuck")) touched.pop_back();
      return undo(mover, touched, in_context(move.address, moved.error()));
    }
  }
  return {};
}

}  // namespace fuse
