#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/transport.h"

namespace fuse {

// A connection without a socket: it gives the pieces, one a read, then the end,
// and takes down what is written.
class MemoryTransport final : public Transport {
 public:
  MemoryTransport(std::vector<std::string_view> pieces, std::string& written)
      : pieces_(std::move(pieces)), written_(written) {}

  IoTry read(std::span<char> into) override {
    if (next_ == pieces_.size()) return {IoTry::Kind::end, 0, {}};
    std::string_view& piece = pieces_[next_];
    const std::size_t size = std::min(into.size(), piece.size());
    std::memcpy(into.data(), piece.data(), size);
    piece.remove_prefix(size);
    if (piece.empty()) ++next_;
    return {IoTry::Kind::moved, size, {}};
  }
  IoTry write(std::string_view bytes) override {
    written_ += bytes;
    return {IoTry::Kind::moved, bytes.size(), {}};
  }
  void shutdown_write() override {}
  [[nodiscard]] int fd() const override { return -1; }

 private:
  std::vector<std::string_view> pieces_;  // none of them empty
  std::size_t next_ = 0;
  std::string& written_;
};

}  // namespace fuse
