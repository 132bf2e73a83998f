#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/host.h"
#include "hostmode/devices/device_files.h"

namespace fuse {

// One thing that was looked at on a GPU box.
struct Finding {
  enum class Kind {
    pass,
    problem,  // VMs or their devices do not work until it is put right
    note,     // worth knowing
  };
  Kind kind = Kind::pass;
  std::string name{};   // "iommu", "card 0000:41:00.0"
  std::string words{};  // what was found
  std::string fix{};    // what to do; empty for what passes
};
std::string_view to_string(Finding::Kind kind);

struct DoctorOptions {
  DevicePaths devices{};
  std::string qemu = "qemu-system-x86_64";
  std::string qemu_user{};  // as find_qemu_user
  fs::path ovmf_code{};     // empty: where packages install it
  fs::path images_dir{};
  std::uint16_t port = 8091;
};

// Looks at everything that a host needs to serve devices: IOMMU, cards and who has
// them, drivers, KVM, QEMU and its firmware, memory, MIG, images, port, clock.
std::vector<Finding> examine_host(Host& host, const DoctorOptions& options);

// The ports on which something listens, from /proc/net/tcp or tcp6.
std::vector<std::uint16_t> listening_ports(std::string_view text);

}  // namespace fuse
