#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fuse {

// PCI addresses come in many spellings: sysfs writes 0000:0f:00.0, nvidia-smi
// 00000000:0F:00.0, lspci 0f:00.0, the kernel's messages leave the function out.
// Here they are as in sysfs: lower case, a domain of four digits, more only where
// it needs them.

// "DOMAIN:BUS:DEVICE.FUNCTION" of any such spelling; nothing when it is none or
// names no function.
std::optional<std::string> pci_address(std::string_view text);
// "DOMAIN:BUS:DEVICE", what the functions of one card share; with or without a
// function in `text`.
std::optional<std::string> pci_slot(std::string_view text);

}  // namespace fuse
