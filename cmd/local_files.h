#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/host.h"
#include "base/result.h"
#include "cmd/copy_place.h"
#include "orchestrator/api/streams.h"

namespace fuse::cmd {

// What there is at a path of this machine.  Symbolic links are followed.
CopyKind local_kind(const fs::path& path);

// A file that is written: beside its place first, and put there by commit().  What is
// neither a file nor missing, such as a terminal, is written to as it is.
class FileWriter {
 public:
  static Result<FileWriter> open(const fs::path& path);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();  // without commit() nothing has happened

  Result<void> write(std::string_view bytes);
  Result<void> commit(std::uint32_t mode);

 private:
  FileWriter(fs::path path, fs::path beside, Fd fd)
      : path_(std::move(path)), beside_(std::move(beside)), fd_(std::move(fd)) {}

  fs::path path_;
  fs::path beside_;  // empty: written in place
  Fd fd_;
};

// Hands a descriptor's bytes on until its end.  Success also when the sink answers
// false.
Result<void> read_all(int fd, std::string_view name, const ByteSink& sink);

}  // namespace fuse::cmd
