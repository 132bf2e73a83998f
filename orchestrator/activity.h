#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/locked.h"
#include "orchestrator/api/streams.h"

namespace fuse {

// When somebody last did something in an environment through this process: an exec counts when it
// begins and ends, an attach as long as it is open.  Safe from several threads.
class Activity {
 public:
  explicit Activity(const Clock& clock) : clock_(clock), since_(clock.steady()) {}

  void note(const std::string& uid);
  // The session, counting until it is dropped.
  std::unique_ptr<AttachSession> follow(const std::string& uid,
                                        std::unique_ptr<AttachSession> session);
  // For how long nothing happened; since we started when nothing is known.
  [[nodiscard]] std::chrono::nanoseconds idle(const std::string& uid) const;
  // What was active since this was last asked, to be kept where other processes
  // see it; the rest is forgotten.
  std::vector<std::string> take_news();

 private:
  class Followed;
  struct Entry {
    SteadyTime last{};
    int open = 0;
    bool news = true;
  };
  const Clock& clock_;
  SteadyTime since_;
  Locked<std::map<std::string, Entry>> entries_;
};

}  // namespace fuse
