#include "tests/hostmode/leak_check.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/posix_host.h"
#include "base/text.h"

namespace fuse {

namespace {

// "socket:[123]" and the like name an object; numbers of descriptors say nothing.
std::multiset<std::string> open_descriptors() {
  std::multiset<std::string> out;
  PosixHost host;
  for (const std::string& fd : host.list_dir("/proc/self/fd").value()) {
    const auto target = host.read_link(fs::path("/proc/self/fd") / fd);
    // Gone: the one that listed the folder.
    if (target) out.insert(target->native());
  }
  return out;
}

// "S 4711": state and parent.
std::string state_and_parent(PosixHost& host, const std::string& pid) {
  const auto stat = host.read_file(fs::path("/proc") / pid / "stat");
  const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return "";
  const auto fields = split(stat->substr(name_end + 2), ' ');
  return cat(fields[0], " ", fields[1]);
}

}  // namespace

LeakCheck::LeakCheck(fs::path scratch)
    : scratch_(std::move(scratch)),
      processes_(processes()),
      descriptors_(open_descriptors()),
      files_(files()) {}

std::set<std::string> LeakCheck::processes() const {
  std::set<std::string> out;
  PosixHost host;
  for (const std::string& pid : host.list_dir("/proc").value()) {
    if (!parse_int(pid) || pid == cat(::getpid())) continue;
    if (state_and_parent(host, pid) == cat("Z ", ::getpid())) out.insert(cat("zombie ", pid));
    const auto folder = host.read_link(fs::path("/proc") / pid / "cwd");
    const auto command = host.read_file(fs::path("/proc") / pid / "cmdline");
    const bool inside = folder && folder->native().starts_with(scratch_.native());
    const bool named = command && command->find(scratch_.native()) != std::string::npos;
    if (inside || named) out.insert(cat("process ", pid));
  }
  return out;
}

std::set<std::string> LeakCheck::files() const {
  std::set<std::string> out;
  std::error_code failure;
  for (const char* dir : {"state/vms", "state/probes"}) {
    for (fs::recursive_directory_iterator it(scratch_ / dir, failure), end; !failure && it != end;
         it.increment(failure)) {
      out.insert(cat("file ", it->path().native()));
    }
  }
  return out;
}

std::vector<std::string> LeakCheck::leaks() const {
  std::vector<std::string> out;
  std::ranges::set_difference(processes(), processes_, std::back_inserter(out));
  std::ranges::set_difference(files(), files_, std::back_inserter(out));
  std::vector<std::string> opened;
  std::ranges::set_difference(open_descriptors(), descriptors_, std::back_inserter(opened));
  for (const std::string& target : opened) out.push_back(cat("descriptor ", target));
  return out;
}

}  // namespace fuse
