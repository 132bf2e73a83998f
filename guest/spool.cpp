#include "guest/spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/posix_host.h"
#include "base/text.h"

namespace fuse {

namespace {

constexpr std::string_view segment_prefix = "log-";

std::optional<std::uint64_t> segment_index(const std::string& name) {
  if (!name.starts_with(segment_prefix)) return std::nullopt;
  const auto index = parse_int(std::string_view(name).substr(segment_prefix.size()));
  if (!index || *index < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*index);
}

std::uint64_t size_of_file(const fs::path& file) {
  struct stat found {};
  return ::stat(file.c_str(), &found) == 0 ? static_cast<std::uint64_t>(found.st_size) : 0;
}

}  // namespace

Result<std::unique_ptr<Spool>> Spool::create(const fs::path& dir, const SpoolLimits& limits) {
  PosixHost host;
  if (auto gone = host.remove_all(dir); !gone) return gone.error();
  if (auto made = host.make_dirs(dir, 0700); !made) return made.error();
  return std::make_unique<Spool>(dir, limits);
}

Result<std::unique_ptr<Spool>> Spool::open(const fs::path& dir, const SpoolLimits& limits) {
  const auto names = PosixHost().list_dir(dir);
  if (!names) return names.error();
  auto spool = std::make_unique<Spool>(dir, limits);
  std::optional<std::uint64_t> first;
  std::uint64_t last = 0;
  for (const std::string& name : *names) {
    const auto index = segment_index(name);
    if (!index) continue;
    first = std::min(first.value_or(*index), *index);
    last = std::max(last, *index);
  }
  if (!first) return spool;
  spool->first_segment_ = *first;
  spool->on_disk_ = last * limits.segment_size + size_of_file(spool->segment_path(last));
  spool->acknowledged_ = spool->begin();
  return spool;
}

fs::path Spool::segment_path(std::uint64_t index) const {
  std::string number = std::to_string(index);
  number.insert(0, 12 - std::min<std::size_t>(number.size(), 12), '0');
  return dir_ / cat(segment_prefix, number);
}

bool Spool::has_room() const {
  return tail_.empty() && end() - acknowledged_ < limits_.most_unacknowledged;
}

void Spool::append(std::string_view bytes) {
  if (tail_.empty()) write_out(bytes);
  tail_ += bytes;
}

void Spool::flush() {
  std::string_view rest = tail_;
  write_out(rest);
  tail_.erase(0, tail_.size() - rest.size());
}

bool Spool::open_writer() {
  if (writer_.valid()) return true;
  writer_ = Fd(::open(segment_path(on_disk_ / limits_.segment_size).c_str(),
                      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!writer_.valid()) return false;
  // What was skipped is a hole, so that each byte lies at its place.
  const auto within = static_cast<off_t>(on_disk_ % limits_.segment_size);
  if (::ftruncate(writer_.get(), within) < 0) writer_.reset();
  return writer_.valid();
}

void Spool::skip_to(std::uint64_t offset) {
  tail_.erase(0, offset - on_disk_);
  on_disk_ = offset;
  skipped_ = offset;
  writer_.reset();
}

void Spool::write_out(std::string_view& bytes) {
  while (!bytes.empty() && open_writer()) {
    const std::uint64_t room = limits_.segment_size - on_disk_ % limits_.segment_size;
    const std::size_t size = std::min<std::uint64_t>(bytes.size(), room);
    const ssize_t wrote = ::write(writer_.get(), bytes.data(), size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;
    on_disk_ += static_cast<std::uint64_t>(wrote);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
    if (on_disk_ % limits_.segment_size == 0) writer_.reset();
  }
}

Result<std::string> Spool::read(std::uint64_t offset, std::size_t most) {
  if (offset < begin() || offset > end()) {
    return Error{ErrorCode::invalid_argument, cat("no byte ", offset, " in the log")};
  }
  if (offset >= on_disk_) return tail_.substr(offset - on_disk_, most);
  const std::uint64_t segment = offset / limits_.segment_size;
  if (reader_segment_ != segment) {
    reader_ = Fd(::open(segment_path(segment).c_str(), O_RDONLY | O_CLOEXEC));
    reader_segment_ = segment;
    if (!reader_.valid()) {
      reader_segment_.reset();
      return errno_error("open a part of the log", errno);
    }
  }
  const std::uint64_t within = offset % limits_.segment_size;
  std::string bytes(std::min<std::uint64_t>(most, limits_.segment_size - within), '\0');
  const ssize_t got =
      ::pread(reader_.get(), bytes.data(), bytes.size(), static_cast<off_t>(within));
  if (got <= 0) return errno_error("read the log", got < 0 ? errno : EIO);
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

void Spool::acknowledge(std::uint64_t offset) {
  acknowledged_ = std::max(acknowledged_, std::min(offset, end()));
  if (acknowledged_ > on_disk_) skip_to(acknowledged_);
  // The newest stays, if only to tell an agent that comes after us where the log
  // ends.
  const std::uint64_t newest = on_disk_ == 0 ? 0 : (on_disk_ - 1) / limits_.segment_size;
  while (first_segment_ < newest && (first_segment_ + 1) * limits_.segment_size <= acknowledged_) {
    ::unlink(segment_path(first_segment_).c_str());
    if (reader_segment_ == first_segment_) reader_segment_.reset();
    ++first_segment_;
  }
}

std::uint64_t spool_limit(const fs::path& dir) {
  constexpr std::uint64_t most = 1U << 30U;
  constexpr std::uint64_t least = 1U << 20U;
  struct statvfs space {};
  if (::statvfs(dir.c_str(), &space) < 0) return most;
  return std::clamp<std::uint64_t>(space.f_bavail * space.f_frsize / 4, least, most);
}

}  // namespace fuse
