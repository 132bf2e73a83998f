#include "hostmode/job_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/text.h"

namespace fuse {

namespace {

constexpr std::size_t chunk = 65536;

Result<std::size_t> read_at(int fd, char* into, std::size_t count, std::uint64_t offset) {
  while (true) {
    const ssize_t got = ::pread(fd, into, count, static_cast<off_t>(offset));
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) return errno_error("read the job's log", errno);
  }
}

}  // namespace

Result<std::shared_ptr<JobLog>> JobLog::open(const fs::path& file) {
  Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!fd.valid()) return errno_error(cat("open ", file.native()), errno);
  const off_t size = ::lseek(fd.get(), 0, SEEK_END);
  if (size < 0) return errno_error(cat("measure ", file.native()), errno);
  return std::shared_ptr<JobLog>(
      new JobLog(std::move(fd), static_cast<std::uint64_t>(size), false));
}

Result<std::shared_ptr<JobLog>> JobLog::open_finished(const fs::path& file) {
  Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid() && errno != ENOENT) return errno_error(cat("open ", file.native()), errno);
  const off_t size = fd.valid() ? ::lseek(fd.get(), 0, SEEK_END) : 0;
  if (size < 0) return errno_error(cat("measure ", file.native()), errno);
  return std::shared_ptr<JobLog>(new JobLog(std::move(fd), static_cast<std::uint64_t>(size), true));
}

std::uint64_t JobLog::size() const {
  const std::scoped_lock lock(mutex_);
  return size_;
}

bool JobLog::finished() const {
  const std::scoped_lock lock(mutex_);
  return finished_;
}

Result<void> JobLog::append(std::string_view bytes) {
  // One writer, so the size cannot change meanwhile; readers stop at size_.
  const std::uint64_t before = size();
  std::string_view left = bytes;
  while (!left.empty()) {
    const ssize_t wrote = ::write(file_.get(), left.data(), left.size());
    if (wrote >= 0) {
      left.remove_prefix(static_cast<std::size_t>(wrote));
    } else if (errno != EINTR) {
      const int failure = errno;
      if (::ftruncate(file_.get(), static_cast<off_t>(before)) < 0) {
        return errno_error("cut the job's log back", errno);
      }
      return errno_error("write the job's log", failure);
    }
  }
  const std::scoped_lock lock(mutex_);
  size_ = before + bytes.size();
  grown_.notify_all();
  return {};
}

Result<void> JobLog::sync() {
  if (file_.valid() && ::fdatasync(file_.get()) < 0)
    return errno_error("sync the job's log", errno);
  return {};
}

Result<void> JobLog::copy_to(const fs::path& file) const {
  const Fd copy(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!copy.valid()) return errno_error(cat("create ", file.native()), errno);
  Result<void> written;
  const auto copied = hand_over(0, size(), [&](std::string_view bytes) {
    written = write_all(copy.get(), bytes, cat("write ", file.native()));
    return written.has_value();
  });
  if (!copied) return copied.error();
  return written;
}

void JobLog::finish() {
  const std::scoped_lock lock(mutex_);
  finished_ = true;
  grown_.notify_all();
}

JobLog::Progress JobLog::wait_beyond(std::uint64_t offset, std::stop_token stop) {
  std::unique_lock lock(mutex_);
  grown_.wait(lock, std::move(stop), [&] { return size_ > offset || finished_; });
  return {size_, finished_};
}

Result<LogRange> JobLog::read(const LogQuery& query, const ByteSink& sink, std::stop_token stop) {
  LogRange range{query.offset, query.offset};
  if (query.tail) {
    const auto start = start_of_tail(*query.tail, size());
    if (!start) return start.error();
    range = {*start, *start};
  }
  while (!stop.stop_requested()) {
    Progress now{size(), finished()};
    if (query.follow && now.size <= range.end && !now.finished) now = wait_beyond(range.end, stop);
    if (now.size <= range.end) {
      if (now.finished || !query.follow) return range;
      continue;
    }
    const auto reached = hand_over(range.end, now.size, sink);
    if (!reached) return reached.error();
    range.end = reached->end;
    if (reached->refused || !query.follow) return range;
  }
  return range;
}

Result<JobLog::HandedOver> JobLog::hand_over(std::uint64_t from, std::uint64_t to,
                                             const ByteSink& sink) const {
  std::array<char, chunk> buffer{};
  while (from < to) {
    const std::size_t wanted = std::min<std::uint64_t>(buffer.size(), to - from);
    const auto got = read_at(file_.get(), buffer.data(), wanted, from);
    if (!got) return got.error();
    if (*got == 0) return Error{ErrorCode::internal, "the job's log was cut short"};
    from += *got;
    if (!sink({buffer.data(), *got})) return HandedOver{from, true};
  }
  return HandedOver{from, false};
}

Result<std::uint64_t> JobLog::start_of_tail(std::uint64_t lines, std::uint64_t end) const {
  if (lines == 0) return end;
  std::array<char, chunk> buffer{};
  std::uint64_t seen = 0;
  std::uint64_t at = end;
  while (at > 0) {
    const std::uint64_t from = at - std::min<std::uint64_t>(buffer.size(), at);
    const auto got = read_at(file_.get(), buffer.data(), at - from, from);
    if (!got) return got.error();
    for (std::size_t i = *got; i-- > 0;) {
      // A newline at the very end closes the last line, it begins none.
      const bool ends_a_line = buffer[i] == '\n' && from + i + 1 < end;
      if (ends_a_line && ++seen == lines) return from + i + 1;
    }
    at = from;
  }
  return std::uint64_t{0};
}

}  // namespace fuse
