#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

// Trees of files as one stream of bytes: the part of the tar format that tar(1) of
// GNU and of busybox both write and read.
namespace fuse::cmd {

struct TarEntry {
  enum class Type { file, folder, symlink, hardlink, other };
  Type type = Type::file;
  std::string path{};      // as in the archive
  std::string target{};    // of a link
  std::uint32_t mode = 0;  // permission bits
  std::uint64_t size = 0;  // of a file
  std::int64_t mtime = 0;  // seconds since 1970
};

// What stands before an entry's bytes, owned by root.  Long names take the form that
// GNU tar made usual.
std::string tar_header(const TarEntry& entry);
// What stands behind `size` bytes of a file.
std::string tar_padding(std::uint64_t size);
// What ends an archive.
std::string tar_end();

// Takes an archive's entries as they come.  An error ends the reading.
class TarSink {
 public:
  virtual ~TarSink() = default;
  virtual Result<void> entry(const TarEntry& entry) = 0;
  // Of the last entry, which is a file: its next bytes, and that it has them all.
  virtual Result<void> data(std::string_view bytes) = 0;
  virtual Result<void> end() = 0;
};

// Reads an archive piece by piece.  Whatever wrote it is not trusted: what is no
// archive is an error, and no more than a name is kept.
class TarReader {
 public:
  explicit TarReader(TarSink& sink) : sink_(sink) {}

  Result<void> feed(std::string_view bytes);
  // The archive has come to its end, not to that of a connection.
  [[nodiscard]] bool is_complete() const { return complete_; }

 private:
  enum class Part { header, file, long_name, long_target, extended, skipped };

  static std::optional<Part> text_part(char kind);
  std::size_t take(std::string_view bytes);
  Result<void> use(std::string_view bytes);
  Result<void> read_header();
  Result<void> begin(char kind, std::string name, std::string target);
  Result<void> finish_part();
  Result<void> read_extended();

  TarSink& sink_;
  Part part_ = Part::header;
  std::string text_{};        // of a header, or of what only leads to another one
  std::uint64_t left_ = 512;  // of this part
  std::uint64_t padding_ = 0;
  TarEntry entry_{};
  std::string next_path_{};  // what the entry to come is called
  std::string next_target_{};
  std::uint64_t next_size_ = 0;
  bool has_next_size_ = false;
  bool complete_ = false;
};

}  // namespace fuse::cmd
