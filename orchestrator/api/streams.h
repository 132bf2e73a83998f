#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fuse {

// Takes bytes of a stream as they come; false ends it.
using ByteSink = std::function<bool(std::string_view bytes)>;

// Which part of a job's output, by byte offset from its start.
struct LogQuery {
  std::uint64_t offset = 0;
  bool follow = false;                  // goes on until the job has ended and all is out
  std::optional<std::uint64_t> tail{};  // instead of offset: start at the last N lines
};

// The range that was handed to the sink: [begin, end).
struct LogRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// One fuse-attach/1 frame.
enum class AttachFrameType : std::uint8_t {
  stdin_bytes = 0,   // empty: end of input
  stdout_bytes = 1,  // on a pty everything the guest prints
  stderr_bytes = 2,  // only without a pty
  resize = 3,        // {"rows", "cols"}
  exit = 4,          // {"exit_code"}
};
struct AttachFrame {
  AttachFrameType type = AttachFrameType::stdin_bytes;
  std::string payload{};
};

struct AttachRequest {
  std::vector<std::string> cmd{};  // empty: a login shell
  bool tty = true;
  std::int32_t rows = 0;  // 0: not given
  std::int32_t cols = 0;
};

// An open session with a process in a guest.  One thread may read while another
// writes.  Closing it kills the process.
class AttachSession {
 public:
  virtual ~AttachSession() = default;
  // Blocks for the next frame; nothing once the session is over.
  virtual Result<std::optional<AttachFrame>> read() = 0;
  virtual Result<void> write(const AttachFrame& frame) = 0;
  // Wakes a blocked read.
  virtual void close() = 0;
};

}  // namespace fuse
