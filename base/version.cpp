#include "base/version.h"

#include <elf.h>
#include <link.h>

#include <cstring>

#include "base/text.h"

namespace fuse {

namespace {

// Looks for NT_GNU_BUILD_ID among the notes of the first object: the
// executable.
int find_build_id(dl_phdr_info* object, std::size_t /*size*/, void* into) {
  auto& id = *static_cast<std::string*>(into);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives addresses as numbers
    const char* note = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    const char* const end = note + segment.p_memsz;
    while (note + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) header{};
      std::memcpy(&header, note, sizeof header);
      const char* const name = note + sizeof header;
      const char* const body = name + ((header.n_namesz + 3U) & ~3U);
      if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
          std::memcmp(name, "GNU", 4) == 0) {
        id = hex_encode(std::string_view(body, header.n_descsz));
        return 1;
      }
      note = body + ((header.n_descsz + 3U) & ~3U);
    }
  }
  return 1;
}

}  // namespace

std::string_view version() {
  return FUSE_VERSION;
}

std::string build_id() {
  std::string id;
  ::dl_iterate_phdr(find_build_id, &id);
  return id.empty() ? "unknown" : id;
}

}  // namespace fuse
