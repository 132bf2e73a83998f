#include "hostmode/initramfs_modules.h"

#include <elf.h>

#include <cstring>
#include <map>

#include "base/text.h"
#include "tests/catch.h"

namespace fuse {
namespace {

template <class T>
std::string bytes_of(const T& value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

// A file with the sections of a module that matter: nothing, the names, .modinfo.
std::string module_with(const std::string& info, std::string section = ".modinfo") {
  const std::string names = std::string("\0.shstrtab\0", 11) + section + '\0';
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 1;
  header.e_shoff = sizeof(header) + names.size() + info.size();
  Elf64_Shdr names_section{};
  names_section.sh_name = 1;
  names_section.sh_offset = sizeof(header);
  names_section.sh_size = names.size();
  Elf64_Shdr info_section{};
  info_section.sh_name = 11;
  info_section.sh_offset = sizeof(header) + names.size();
  info_section.sh_size = info.size();
  return bytes_of(header) + names + info + bytes_of(Elf64_Shdr{}) + bytes_of(names_section) +
         bytes_of(info_section);
}

using Names = std::vector<std::string>;

ModuleLookup lookup(std::map<std::string, Names> known) {
  return [known = std::move(known)](const std::string& name) -> Result<Names> {
    const auto found = known.find(name);
    if (found == known.end()) return Error{ErrorCode::not_found, "there is none"};
    return found->second;
  };
}

TEST_CASE("a module's name is its file's, with underscores and without endings") {
  CHECK(module_name_of("kernel/drivers/char/hw_random/virtio-rng.ko") == "virtio_rng");
  CHECK(module_name_of("virtio_blk.ko.xz") == "virtio_blk");
  CHECK(module_name_of("virtio") == "virtio");
}

TEST_CASE("a module says what it depends on") {
  const std::string info("license=GPL\0depends=virtio,virtio-ring\0name=virtio_pci\0", 56);
  CHECK(module_dependencies(module_with(info)).value() == Names{"virtio", "virtio_ring"});
  CHECK(module_dependencies(module_with(std::string("depends=\0", 9))).value().empty());
}

TEST_CASE("what is no module is refused in words") {
  CHECK(module_dependencies("").error().message == "not a kernel module: no ELF file");
  CHECK(module_dependencies("#!/bin/sh\nexit 0\n").error().message ==
        "not a kernel module: no ELF file");
  CHECK(module_dependencies(module_with("depends=a", ".comment")).error().message ==
        "not a kernel module: no section .modinfo");
  CHECK(module_dependencies(module_with(std::string("license=GPL\0", 12))).error().message ==
        "not a kernel module: it does not say what it depends on");
}

TEST_CASE("a module cut short anywhere is refused, not read beyond its end") {
  const std::string whole = module_with(std::string("depends=virtio\0", 15));
  REQUIRE(module_dependencies(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // A copy of exactly that size, so that a sanitizer sees a read behind it.
    const std::string cut = whole.substr(0, size);
    CHECK_FALSE(module_dependencies(cut));
  }
}

TEST_CASE("modules load after what they depend on, else in the order wanted") {
  const auto dependencies = lookup({{"virtio_ring", {}},
                                    {"virtio", {"virtio_ring"}},
                                    {"virtio_pci", {"virtio", "virtio_ring"}},
                                    {"virtio_console", {"virtio", "virtio_ring"}},
                                    {"qemu_fw_cfg", {}}});
  const Names wanted{"virtio-pci", "qemu_fw_cfg", "virtio_console", "virtio"};
  CHECK(module_load_order(wanted, dependencies).value() ==
        Names{"virtio_ring", "virtio", "virtio_pci", "qemu_fw_cfg", "virtio_console"});
}

TEST_CASE("a missing module and a circle are errors that name the module") {
  const Names wanted{"a"};
  CHECK(module_load_order(wanted, lookup({{"a", {"b"}}})).error().message ==
        "kernel module b: there is none");
  CHECK(module_load_order(wanted, lookup({{"a", {"b"}}, {"b", {"a"}}})).error().message ==
        "kernel module a depends on itself");
}

}  // namespace
}  // namespace fuse
