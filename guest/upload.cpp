#include "guest/upload.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"
#include "base/ids.h"
#include "base/posix_host.h"
#include "base/text.h"

namespace fuse {

namespace {

bool is_private(const fs::path& path) {
  const std::string& text = path.native();
  return text == "/fuse" || text.starts_with("/fuse/");
}

class Upload final : public StreamHandler {
 public:
  Upload(ServerStream& stream, fs::path named, fs::path file)
      : stream_(stream),
        named_(std::move(named)),
        file_(std::move(file)),
        temporary_(file_.parent_path() / cat(".fuse-upload-", random_hex(8))) {}
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;
  ~Upload() override {
    if (fd_.valid()) ::unlink(temporary_.c_str());
  }

  Result<void> open(mode_t mode) {
    struct stat there {};
    if (::stat(file_.c_str(), &there) == 0 && S_ISDIR(there.st_mode)) {
      return Error{ErrorCode::conflict, cat(named_.native(), " is a folder")};
    }
    fd_ = Fd(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!fd_.valid()) return errno_error(cat("create ", named_.native()), errno);
    // Whatever our umask says.
    if (::fchmod(fd_.get(), mode) < 0) return errno_error(cat("chmod ", named_.native()), errno);
    return {};
  }

  void on_data(std::uint8_t pipe, std::string_view bytes, bool end) override {
    if (pipe != pipe_in) return;
    if (auto wrote = write_all(fd_.get(), bytes, cat("write ", named_.native())); !wrote) {
      return stream_.fail(wrote.error());
    }
    stream_.grant(bytes.size());
    if (!end) return;
    if (auto placed = place(); !placed) return stream_.fail(placed.error());
    stream_.close("{}");
  }

  void on_credit() override {}

 private:
  Result<void> place() {
    if (::rename(temporary_.c_str(), file_.c_str()) < 0) {
      return errno_error(cat("rename to ", named_.native()), errno);
    }
    fd_.reset();
    return {};
  }

  ServerStream& stream_;
  fs::path named_;
  fs::path file_;
  fs::path temporary_;
  Fd fd_{};
};

Result<std::unique_ptr<Upload>> begin(ServerStream& stream, const UploadOperation& upload,
                                      const fs::path& root) {
  const fs::path path = fs::path(upload.path).lexically_normal();
  if (!path.is_absolute() || !path.has_filename() || upload.path.find('\0') != std::string::npos) {
    return Error{ErrorCode::invalid_argument,
                 cat("\"", upload.path, "\" is not the absolute path of a file")};
  }
  const bool inside = is_private(path);
  PosixHost host(root);
  const mode_t dir_mode = inside ? 0700 : 0755;
  if (auto made = host.make_dirs(path.parent_path(), dir_mode); !made) return made.error();
  auto handler =
      std::make_unique<Upload>(stream, path, root.empty() ? path : root / path.relative_path());
  const mode_t mode = upload.mode != 0 ? upload.mode : (inside ? 0600 : 0644);
  if (auto opened = handler->open(mode); !opened) return opened.error();
  return handler;
}

}  // namespace

std::unique_ptr<StreamHandler> start_upload(ServerStream& stream, const UploadOperation& upload,
                                            const fs::path& root) {
  auto handler = begin(stream, upload, root);
  if (handler) return *std::move(handler);
  stream.fail(handler.error());
  return nullptr;
}

}  // namespace fuse
