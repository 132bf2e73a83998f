#include "hostmode/capacity.h"

#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <cerrno>
#include <cstdint>

#include "base/text.h"

namespace fuse {

Result<std::int32_t> count_cpus(std::string_view list) {
  const Error unclear{ErrorCode::internal, cat("\"", trim(list), "\" is not a list of CPUs")};
  std::int64_t count = 0;
  for (const std::string& range : split(trim(list), ',')) {
    const auto ends = split(range, '-');
    const auto first = parse_int(ends.front());
    const auto last = parse_int(ends.back());
    if (!first || !last || ends.size() > 2 || *first < 0 || *last < *first || *last > 1000000) {
      return unclear;
    }
    count += *last - *first + 1;
  }
  return static_cast<std::int32_t>(count);
}

Result<std::int32_t> total_ram_mb(std::string_view meminfo) {
  constexpr std::string_view key = "MemTotal:";
  for (const std::string& line : split(meminfo, '\n')) {
    if (!line.starts_with(key)) continue;
    const auto words = split(trim(std::string_view(line).substr(key.size())), ' ');
    const auto kib = parse_int(words.front());
    if (kib && *kib > 0) return static_cast<std::int32_t>(*kib / 1024);
  }
  return Error{ErrorCode::internal, "/proc/meminfo has no MemTotal"};
}

std::string arch_of(std::string_view machine) {
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  return lowercase(machine);
}

Result<HostCapacity> read_capacity(Host& host, const fs::path& disk) {
  HostCapacity capacity;
  const auto online = host.read_file("/sys/devices/system/cpu/online");
  if (!online) return online.error();
  const auto cpus = count_cpus(*online);
  if (!cpus) return cpus.error();
  const auto meminfo = host.read_file("/proc/meminfo");
  if (!meminfo) return meminfo.error();
  const auto ram = total_ram_mb(*meminfo);
  if (!ram) return ram.error();
  struct statvfs space {};
  if (::statvfs(disk.c_str(), &space) < 0) {
    return errno_error(cat("measure the free space at ", disk.native()), errno);
  }
  utsname machine{};
  if (::uname(&machine) < 0) return errno_error("ask for the machine's name", errno);

  capacity.cpus = *cpus;
  capacity.ram_mb = *ram;
  const std::uint64_t free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  capacity.storage_gb = static_cast<std::int32_t>(free_bytes >> 30U);
  capacity.arch = arch_of(machine.machine);
  return capacity;
}

}  // namespace fuse
