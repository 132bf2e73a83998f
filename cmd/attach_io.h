#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "base/fd.h"
#include "cmd/context.h"
#include "orchestrator/api/streams.h"

namespace fuse::cmd {

// Sends what comes on a descriptor to a session as its standard input, from a
// thread of its own, and an empty frame at its end.  Dropping it ends that,
// also in the middle of a read.
class InputPump {
 public:
  InputPump(AttachSession& session, int fd);
  InputPump(const InputPump&) = delete;
  InputPump& operator=(const InputPump&) = delete;
  ~InputPump();

 private:
  void work(int fd) const;

  AttachSession& session_;
  Fd end_{};
  std::thread thread_{};
};

// How a session ended.
struct AttachEnd {
  std::optional<int> exit_code{};  // of the process; absent when the line broke
  bool output_closed = false;      // nobody reads our output any more
};

// Writes a session's output to `out` and `err` until it is over.
Result<AttachEnd> write_output(Context& context, AttachSession& session);

}  // namespace fuse::cmd
