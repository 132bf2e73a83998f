#include "hostmode/kernel_image.h"

#include <elf.h>

#include <cstring>
#include <string>

#include "tests/catch.h"

namespace fuse {
namespace {

template <class T>
void put(std::string& bytes, std::size_t offset, const T& value) {
  if (bytes.size() < offset + sizeof(T)) bytes.resize(offset + sizeof(T));
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

// A kernel as a package ships it: two sectors of setup, code, what is packed, more code.
std::string bzimage(std::string_view payload) {
  std::string image(1536, '\0');
  put<std::uint8_t>(image, 0x1f1, 2);
  image.replace(0x202, 4, "HdrS");
  put<std::uint16_t>(image, 0x206, 0x20f);
  put<std::uint32_t>(image, 0x248, 40);
  put<std::uint32_t>(image, 0x24c, static_cast<std::uint32_t>(payload.size()));
  image.append(40, 'c').append(payload).append(100, 'e');
  return image;
}

constexpr std::string_view lz4_magic = "\x02\x21\x4c\x18";
constexpr std::string_view size_of_513("\x01\x02\x00\x00", 4);

// An ELF file with one segment of notes: one of another kind, then `note`.
std::string elf_with(std::uint32_t type, std::string_view name) {
  std::string notes;
  put(notes, 0, Elf64_Nhdr{.n_namesz = 6, .n_descsz = 3, .n_type = 18});
  notes.append("Linux", 6).append(2, '\0').append("abc", 3).append(1, '\0');
  const Elf64_Nhdr note{
      .n_namesz = static_cast<std::uint32_t>(name.size() + 1), .n_descsz = 4, .n_type = type};
  put(notes, notes.size(), note);
  notes.append(name).append(1, '\0').append(4, 'a');

  std::string elf;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_phoff = sizeof(header);
  header.e_phnum = 2;
  put(elf, 0, header);
  Elf64_Phdr segment{};
  segment.p_type = PT_LOAD;
  put(elf, elf.size(), segment);
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof(header) + 2 * sizeof(Elf64_Phdr);
  segment.p_filesz = notes.size();
  put(elf, elf.size(), segment);
  return elf + notes;
}

TEST_CASE("what is packed in a kernel is found by its boot header") {
  const std::string payload = std::string(lz4_magic) + "packed" + std::string(size_of_513);
  const std::string image = bzimage(payload);
  const auto packed = packed_kernel(image);
  REQUIRE(packed);
  CHECK(packed->packing == "lz4");
  CHECK(packed->bytes == std::string(lz4_magic) + "packed");
  CHECK(packed->unpacked_size == 513);
}

TEST_CASE("the size at the end belongs to gzip's own format") {
  const std::string payload = "\x1f\x8bpacked" + std::string(size_of_513);
  const std::string image = bzimage(payload);
  const auto packed = packed_kernel(image);
  REQUIRE(packed);
  CHECK(packed->packing == "gzip");
  CHECK(packed->bytes == payload);
  CHECK(packed->unpacked_size == 513);
}

TEST_CASE("a file that is no such kernel says why") {
  const auto why = [](std::string_view image) { return packed_kernel(image).error().message; };
  CHECK(why("") == "not a kernel for x86: it has no boot header");
  CHECK(why(std::string(4096, 'x')) == "not a kernel for x86: it has no boot header");
  CHECK(why(bzimage("plain bytes")) == "not a kernel for x86: it is packed in an unknown way");
  std::string old = bzimage("plain bytes");
  put<std::uint16_t>(old, 0x206, 0x207);
  CHECK(why(old) == "not a kernel for x86: its boot protocol is older than 2.08");
}

TEST_CASE("a kernel that is cut short anywhere is refused") {
  const std::string payload = std::string(lz4_magic) + "packed" + std::string(size_of_513);
  const std::string image = bzimage(payload);
  for (std::size_t size = 0; size < image.size() - 100; ++size) {
    CAPTURE(size);
    REQUIRE_FALSE(packed_kernel(std::string_view(image).substr(0, size)));
  }
  std::string huge = image;
  put<std::uint32_t>(huge, 0x24c, 0xffffffff);
  CHECK_FALSE(packed_kernel(huge));
}

TEST_CASE("a kernel can be entered directly when it carries Xen's note of an entry") {
  CHECK(has_direct_entry(elf_with(18, "Xen")));
  CHECK_FALSE(has_direct_entry(elf_with(17, "Xen")));
  CHECK_FALSE(has_direct_entry(elf_with(18, "Xem")));
  CHECK_FALSE(has_direct_entry(""));
  CHECK_FALSE(has_direct_entry("MZ and more"));
  const std::string elf = elf_with(18, "Xen");
  for (std::size_t size = 0; size < elf.size() - 4; ++size) {
    CAPTURE(size);
    REQUIRE_FALSE(has_direct_entry(std::string_view(elf).substr(0, size)));
  }
}

}  // namespace
}  // namespace fuse
