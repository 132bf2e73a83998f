#pragma once

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/host.h"
#include "cmd/local_paths.h"

namespace fuse::cmd {

// Makes the state folder, 0700.  forbidden when it belongs to another user;
// rights that it gives to others are taken away.
Result<void> prepare_state_dir(const fs::path& dir);

// What makes one process the only one of a state folder.
class StateLock {
 public:
  // Nothing when another process has it.  Holds our pid for people to see.
  static Result<std::optional<StateLock>> take(const fs::path& file);
  // The pid in the lock file; nothing when nobody holds the lock.
  static std::optional<pid_t> holder(const fs::path& file);
  // Whether the lock is still where others look for it: not when the state folder
  // was removed.
  [[nodiscard]] bool is_there(const fs::path& file) const;

 private:
  explicit StateLock(Fd file) : file_(std::move(file)) {}
  Fd file_;
};

// The 32 bytes that seal secrets in the database, made when there are none.
// The error for a damaged file says what to do.
Result<std::string> read_or_make_key(Host& host, const fs::path& file);

// Opens the log for appending, moving one beyond 4 MiB to daemon.log.1 first.
Result<Fd> open_log(const LocalPaths& paths);
// The log's length now, and what it holds beyond `offset`: its last `lines`.
std::uintmax_t log_size(const LocalPaths& paths);
std::string log_tail(Host& host, const LocalPaths& paths, std::uintmax_t offset, std::size_t lines);

}  // namespace fuse::cmd
