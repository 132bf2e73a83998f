#include "hostmode/kernel_image.h"

#include <elf.h>

#include <array>
#include <utility>

#include "base/text.h"
#include "hostmode/elf_bytes.h"

namespace fuse {
namespace {

// Offsets into the boot header.
constexpr std::uint64_t setup_sectors_at = 0x1f1;
constexpr std::uint64_t magic_at = 0x202;
constexpr std::uint64_t version_at = 0x206;
constexpr std::uint64_t payload_offset_at = 0x248;
constexpr std::uint64_t payload_length_at = 0x24c;
constexpr std::uint64_t sector = 512;

Error not_a_kernel(std::string_view why) {
  return Error{ErrorCode::invalid_argument, cat("not a kernel for x86: ", why)};
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> packings{{
    {"\x02\x21\x4c\x18", "lz4"},
    {"\xfd"
     "7zXZ",
     "xz"},
    {"\x28\xb5\x2f\xfd", "zstd"},
    {"\x1f\x8b", "gzip"},
}};

// Xen's note with the address of a 32-bit entry: XEN_ELFNOTE_PHYS32_ENTRY.
constexpr std::uint32_t direct_entry_note = 18;

std::uint64_t padded(std::uint64_t size) {
  return (size + 3) / 4 * 4;
}

bool names_direct_entry(std::string_view notes) {
  std::uint64_t at = 0;
  while (const auto note = read_at<Elf64_Nhdr>(notes, at)) {
    at += sizeof(Elf64_Nhdr);
    const auto name = slice(notes, at, note->n_namesz);
    if (!name) return false;
    if (note->n_type == direct_entry_note && *name == std::string_view("Xen\0", 4)) return true;
    at += padded(note->n_namesz) + padded(note->n_descsz);
  }
  return false;
}

}  // namespace

Result<PackedKernel> packed_kernel(std::string_view image) {
  if (slice(image, magic_at, 4) != "HdrS") return not_a_kernel("it has no boot header");
  if (read_at<std::uint16_t>(image, version_at).value_or(0) < 0x208) {
    return not_a_kernel("its boot protocol is older than 2.08");
  }
  const std::uint64_t sectors = read_at<std::uint8_t>(image, setup_sectors_at).value_or(0);
  const std::uint64_t start = ((sectors == 0 ? 4 : sectors) + 1) * sector;
  const std::uint64_t offset = read_at<std::uint32_t>(image, payload_offset_at).value_or(0);
  const std::uint64_t length = read_at<std::uint32_t>(image, payload_length_at).value_or(0);
  const auto payload = slice(image, start + offset, length);
  if (!payload || length < sizeof(std::uint32_t)) return not_a_kernel("it is cut short");
  for (const auto& [magic, packing] : packings) {
    if (!payload->starts_with(magic)) continue;
    // The size stands behind the packed bytes, except in gzip's format, which ends
    // with it by itself.
    const std::uint64_t end = length - sizeof(std::uint32_t);
    return PackedKernel{.bytes = packing == "gzip" ? *payload : payload->substr(0, end),
                        .packing = packing,
                        .unpacked_size = read_at<std::uint32_t>(*payload, end).value_or(0)};
  }
  return not_a_kernel("it is packed in an unknown way");
}

bool has_direct_entry(std::string_view elf) {
  const auto header = read_at<Elf64_Ehdr>(elf, 0);
  if (!header || !elf.starts_with(ELFMAG) || header->e_ident[EI_CLASS] != ELFCLASS64) return false;
  for (std::uint64_t index = 0; index < header->e_phnum; ++index) {
    const auto segment = read_at<Elf64_Phdr>(elf, header->e_phoff + index * sizeof(Elf64_Phdr));
    if (!segment) return false;
    if (segment->p_type != PT_NOTE) continue;
    const auto notes = slice(elf, segment->p_offset, segment->p_filesz);
    if (notes && names_direct_entry(*notes)) return true;
  }
  return false;
}

}  // namespace fuse
