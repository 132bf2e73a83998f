#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hostmode/qmp.h"
#include "hostmode/user_net.h"
#include "hostmode/vm_record.h"

// What QEMU says and what lies on disk: whatever it is, it is read or refused.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  fuse::QmpLines lines(4096);
  const std::size_t half = size / 2;
  for (const std::string_view piece : {text.substr(0, half), text.substr(half)}) {
    lines.feed(piece);
    while (true) {
      const auto line = lines.next();
      if (!line || !*line) break;
      (void)fuse::parse_qmp_message(**line);
    }
  }
  (void)fuse::parse_usernet(text);
  (void)fuse::parse_net(text);
  const auto record = fuse::parse_vm_record(text);
  // What is read is written the same way, and read again.
  if (record && !fuse::parse_vm_record(fuse::to_text(*record))) __builtin_trap();
  return 0;
}
