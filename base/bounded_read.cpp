#include "base/bounded_read.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <istream>

#include "base/fd.h"
#include "base/text.h"

namespace fuse {

namespace {

Error too_large(std::string_view shown, std::uint64_t most) {
  return {ErrorCode::payload_too_large, cat(shown, ": more than ", most, " bytes")};
}

}  // namespace

Result<std::string> read_at_most(const fs::path& file, std::uint64_t most) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error(cat("open ", file.native()), errno);
  return read_at_most(fd.get(), file.native(), most);
}

Result<std::string> read_at_most(int fd, std::string_view shown, std::uint64_t most) {
  std::string text;
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(cat("read ", shown), errno);
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > most) return too_large(shown, most);
  }
}

Result<std::string> read_at_most(std::istream& stream, std::string_view shown, std::uint64_t most) {
  std::string text;
  std::array<char, 65536> buffer{};
  while (stream.read(buffer.data(), buffer.size()) || stream.gcount() > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > most) return too_large(shown, most);
  }
  return text;
}

}  // namespace fuse
