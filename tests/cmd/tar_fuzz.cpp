// Feeds any bytes to the reader of archives, as a guest might send them.  Each entry
// gets no more bytes than it announced, and what is made of an archive does not
// depend on how it was cut.  The first byte says how large the pieces are.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/text.h"
#include "cmd/tar.h"

namespace fuse::cmd {
namespace {

void must(bool held) {
  if (!held) std::abort();
}

// Writes down what comes.
class Scribe final : public TarSink {
 public:
  Result<void> entry(const TarEntry& entry) override {
    must(!open_);
    seen_ += cat(static_cast<int>(entry.type), ' ', entry.path, '>', entry.target, ' ', entry.mode,
                 ' ', entry.size, '\n');
    open_ = entry.type == TarEntry::Type::file;
    left_ = entry.size;
    return {};
  }
  Result<void> data(std::string_view bytes) override {
    must(open_ && bytes.size() <= left_);
    left_ -= bytes.size();
    seen_ += bytes;
    return {};
  }
  Result<void> end() override {
    must(open_ && left_ == 0);
    open_ = false;
    return {};
  }
  [[nodiscard]] const std::string& seen() const { return seen_; }

 private:
  std::string seen_{};
  bool open_ = false;
  std::uint64_t left_ = 0;
};

std::string read_in_pieces(std::string_view bytes, std::size_t piece) {
  Scribe scribe;
  TarReader reader(scribe);
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    if (!reader.feed(bytes.substr(at, piece))) return scribe.seen() + "refused";
  }
  return scribe.seen() + (reader.is_complete() ? "complete" : "cut short");
}

}  // namespace
}  // namespace fuse::cmd

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = fuse::cmd::read_in_pieces(bytes, bytes.size() + 1);
  if (fuse::cmd::read_in_pieces(bytes, data[0] + 1U) != whole) std::abort();
  return 0;
}
