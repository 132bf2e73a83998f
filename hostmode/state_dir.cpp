#include "hostmode/state_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/files.h"
#include "base/text.h"

namespace fuse {

namespace {

std::string holder_of(int fd) {
  std::array<char, 32> text{};
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  const auto pid = parse_int(trim({text.data(), static_cast<std::size_t>(got > 0 ? got : 0)}));
  return pid ? cat("process ", *pid) : "another process";
}

Result<void> check_layout(Host& host, const StatePaths& paths) {
  const auto text = host.read_file(paths.version());
  if (!text) {
    if (text.error().code != ErrorCode::not_found) return text.error();
    return host.replace_file(paths.version(), cat(StateDir::layout, "\n"), 0600);
  }
  const auto found = parse_int(trim(*text));
  if (found && *found >= 1 && *found <= StateDir::layout) return {};
  return Error{ErrorCode::unimplemented,
               cat(paths.root().native(), " has layout ", trim(*text), ", this program knows ",
                   StateDir::layout, ": it was used by a newer version")};
}

}  // namespace

Result<StateDir> StateDir::take(Host& host, const StatePaths& paths) {
  if (auto made = host.make_dirs(paths.root(), 0700); !made) return made.error();
  const fs::path file = paths.lock();
  Fd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return errno_error(cat("open ", file.native()), errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) < 0) {
    if (errno != EWOULDBLOCK) return errno_error(cat("lock ", file.native()), errno);
    return Error{ErrorCode::conflict, cat("the state directory ", paths.root().native(),
                                          " is in use by ", holder_of(lock.get()))};
  }
  if (::ftruncate(lock.get(), 0) < 0) return errno_error(cat("write ", file.native()), errno);
  if (auto noted = write_all(lock.get(), cat(::getpid(), "\n"), cat("write ", file.native()));
      !noted) {
    return noted.error();
  }
  if (auto fits = check_layout(host, paths); !fits) return fits.error();
  for (const fs::path& dir : {paths.vms(), paths.receipts()}) {
    if (auto made = host.make_dirs(dir, 0700); !made) return made.error();
  }
  return StateDir(std::move(lock));
}

bool StateDir::is_there(const StatePaths& paths) const {
  return is_file_at(lock_.get(), paths.lock());
}

std::string to_text(const std::vector<QuarantinedVm>& quarantined) {
  auto list = nlohmann::ordered_json::array();
  for (const QuarantinedVm& vm : quarantined) {
    list.push_back({{"uid", vm.uid}, {"reason", vm.reason}, {"since", vm.since}});
  }
  const nlohmann::ordered_json out = {{"quarantined", list}};
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<void> Quarantine::add(const std::string& uid, const Error& reason) {
  {
    const std::scoped_lock lock(mutex_);
    held_[uid] = {.uid = uid,
                  .reason = reason.message,
                  .since = to_rfc3339(clock_.wall()),
                  .newer = reason.code == ErrorCode::unimplemented};
  }
  return host_.replace_file(file_, to_text(list()), 0600);
}

Result<void> Quarantine::remove(const std::string& uid) {
  {
    const std::scoped_lock lock(mutex_);
    held_.erase(uid);
    if (held_.empty()) return host_.remove_all(file_);
  }
  return host_.replace_file(file_, to_text(list()), 0600);
}

Result<void> Quarantine::clear() {
  const std::scoped_lock lock(mutex_);
  held_.clear();
  return host_.remove_all(file_);
}

std::vector<QuarantinedVm> Quarantine::list() const {
  const std::scoped_lock lock(mutex_);
  std::vector<QuarantinedVm> out;
  for (const auto& [uid, vm] : held_) out.push_back(vm);
  return out;
}

std::optional<QuarantinedVm> Quarantine::find(const std::string& uid) const {
  const std::scoped_lock lock(mutex_);
  const auto found = held_.find(uid);
  return found == held_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace fuse
