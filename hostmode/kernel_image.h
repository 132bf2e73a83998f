#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace fuse {

// What a kernel's package ships (a bzImage) holds: the kernel proper, packed.
struct PackedKernel {
  std::string_view bytes{};       // into the image; a whole file for `packing`
  std::string_view packing{};     // "lz4", "xz", "zstd" or "gzip"
  std::uint32_t unpacked_size{};  // bytes
};

// Finds it by the header that boot loaders read (Documentation/arch/x86/boot.rst:
// payload_offset and payload_length, since protocol 2.08).
Result<PackedKernel> packed_kernel(std::string_view image);

// Whether QEMU can enter this kernel, an ELF file, at once: it carries Xen's note
// of a 32-bit entry (PVH).  Neither the firmware's loader nor the kernel's own
// unpacking then takes part.
bool has_direct_entry(std::string_view elf);

}  // namespace fuse
