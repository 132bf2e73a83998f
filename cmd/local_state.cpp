#include "cmd/local_state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/ids.h"
#include "base/posix_host.h"
#include "base/text.h"

namespace fuse::cmd {

namespace {

constexpr std::size_t key_size = 32;
constexpr std::uintmax_t most_log = 4U << 20U;

Result<Fd> open_lock_file(const fs::path& path, int flags) {
  Fd file(::open(path.c_str(), flags | O_CLOEXEC, 0600));
  if (!file.valid()) return errno_error(cat("open ", path.native()), errno);
  return file;
}

}  // namespace

Result<void> prepare_state_dir(const fs::path& dir) {
  if (auto made = PosixHost().make_dirs(dir, 0700); !made) return made;
  const Fd folder(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return errno_error(cat("open ", dir.native()), errno);
  struct stat info {};
  if (::fstat(folder.get(), &info) != 0) return errno_error(cat("look at ", dir.native()), errno);
  if (info.st_uid != ::geteuid()) {
    return Error{
        ErrorCode::forbidden,
        cat("the state folder ", dir.native(), " belongs to another user (uid ", info.st_uid, ")"),
        {{"hint", "name one of your own: FUSE_STATE=DIR, or XDG_STATE_HOME=DIR"}}};
  }
  if ((info.st_mode & 0077U) != 0 && ::fchmod(folder.get(), 0700) != 0) {
    return errno_error(cat("make ", dir.native(), " private"), errno);
  }
  return {};
}

Result<std::optional<StateLock>> StateLock::take(const fs::path& path) {
  auto file = open_lock_file(path, O_RDWR | O_CREAT);
  if (!file) return file.error();
  // Somebody who asks for the holder has the lock for a moment too.
  for (int attempt = 0; ::flock(file->get(), LOCK_EX | LOCK_NB) != 0; ++attempt) {
    if (errno != EWOULDBLOCK) return errno_error(cat("lock ", path.native()), errno);
    if (attempt == 5) return std::optional<StateLock>();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (::ftruncate(file->get(), 0) != 0) {
    return errno_error(cat("empty ", path.native()), errno);
  }
  if (const auto written = write_all(file->get(), cat(::getpid(), "\n"), "write the lock");
      !written) {
    return written.error();
  }
  return std::optional<StateLock>(StateLock(std::move(*file)));
}

bool StateLock::is_there(const fs::path& path) const {
  return is_file_at(file_.get(), path);
}

std::optional<pid_t> StateLock::holder(const fs::path& path) {
  const auto file = open_lock_file(path, O_RDONLY);
  if (!file) return std::nullopt;
  if (::flock(file->get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;
  const auto text = PosixHost().read_file(path);
  const auto pid = text ? parse_int(trim(*text)) : std::nullopt;
  return pid ? std::optional<pid_t>(static_cast<pid_t>(*pid)) : std::optional<pid_t>(0);
}

Result<std::string> read_or_make_key(Host& host, const fs::path& file) {
  auto key = host.read_file(file);
  if (key && key->size() == key_size) return key;
  if (key) {
    return Error{ErrorCode::internal,
                 cat("the key ", file.native(), " is damaged: it has ", key->size(), " bytes, not ",
                     key_size),
                 {{"hint", cat("put back a copy of it, or remove it: rm ", file.native(),
                               " (environments that have not started yet then lose their "
                               "secrets and fail)")}}};
  }
  if (key.error().code != ErrorCode::not_found) return key;
  std::string made = random_bytes(key_size);
  if (const auto written = host.replace_file(file, made, 0600); !written) {
    return written.error();
  }
  return made;
}

Result<Fd> open_log(const LocalPaths& paths) {
  std::error_code ignored;
  if (log_size(paths) > most_log) fs::rename(paths.log(), paths.old_log(), ignored);
  Fd file(::open(paths.log().c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid()) return errno_error(cat("open ", paths.log().native()), errno);
  return file;
}

std::uintmax_t log_size(const LocalPaths& paths) {
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(paths.log(), failed);
  return failed ? 0 : size;
}

std::string log_tail(Host& host, const LocalPaths& paths, std::uintmax_t offset,
                     std::size_t lines) {
  const auto text = host.read_file(paths.log());
  if (!text || offset >= text->size()) return "";
  std::vector<std::string> all = split(trim(std::string_view(*text).substr(offset)), '\n');
  if (all.size() > lines) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(lines));
  return join(all, "\n");
}

}  // namespace fuse::cmd
