#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string_view>

#include "base/fd.h"
#include "base/host.h"
#include "base/result.h"
#include "orchestrator/api/streams.h"

namespace fuse {

// A job's output on disk: one thread appends, any number read and follow.  The
// file's size is how far the guest's log has arrived.  Outlives the file's name:
// who follows reads on while it is moved or removed.
class JobLog {
 public:
  // Creates the file when it is missing, and goes on at its end.
  static Result<std::shared_ptr<JobLog>> open(const fs::path& file);
  // One that nothing is added to any more; a missing file is an empty log.
  static Result<std::shared_ptr<JobLog>> open_finished(const fs::path& file);

  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] bool finished() const;
  // All of `bytes` or, after an error, none: the file is cut back.
  Result<void> append(std::string_view bytes);
  // fdatasync(2).
  Result<void> sync();
  // Writes all of it into a new file: its own has lost its name.
  Result<void> copy_to(const fs::path& file) const;
  // Nothing follows: followers end once they have everything.
  void finish();

  // As JobAgent::logs.  A follower that starts beyond the end waits for it.
  Result<LogRange> read(const LogQuery& query, const ByteSink& sink, std::stop_token stop);

 private:
  JobLog(Fd file, std::uint64_t size, bool finished)
      : file_(std::move(file)), size_(size), finished_(finished) {}
  Result<std::uint64_t> start_of_tail(std::uint64_t lines, std::uint64_t end) const;
  struct HandedOver {
    std::uint64_t end = 0;
    bool refused = false;  // the sink wants no more
  };
  Result<HandedOver> hand_over(std::uint64_t from, std::uint64_t to, const ByteSink& sink) const;
  struct Progress {
    std::uint64_t size = 0;
    bool finished = false;
  };
  Progress wait_beyond(std::uint64_t offset, std::stop_token stop);

  Fd file_;  // -1: a finished log without a file
  mutable std::mutex mutex_;
  std::condition_variable_any grown_;
  std::uint64_t size_;
  bool finished_;
};

}  // namespace fuse
