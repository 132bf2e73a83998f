#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fuse {

// An address for the guest's only network card.
struct NetworkOptions {
  std::string address{};  // IPv4, dotted
  std::int32_t prefix = 0;
  std::string gateway{};  // empty: none
  std::string dns{};      // empty: none
  bool operator==(const NetworkOptions&) const = default;
};

// What a kernel command line says to fuse's init:
//   fuse.host=NAME
//   fuse.net=ADDRESS/PREFIX,GATEWAY,DNS | user (QEMU's own network) | none
//   fuse.root=DEVICE   the disk to go on with; absent: stay in the initramfs
//   fuse.init=PATH     the disk's own init; absent: the agent's process stays
struct BootOptions {
  std::string hostname{};
  std::optional<NetworkOptions> network{};
  std::string root{};
  std::string init{};
};

// invalid_argument for a fuse.net that is none of these; other words are not ours.
Result<BootOptions> parse_boot_options(std::string_view command_line);

}  // namespace fuse
