#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "net/http.h"

namespace fuse {

struct AcceptedConnection {
  Fd socket{};
  HttpPeer peer{};
};

// Threads that serve one connection each.  They are started as they are needed,
// up to a limit, and then kept.
class WorkerPool {
 public:
  WorkerPool(std::size_t most, std::function<void(AcceptedConnection)> serve);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool() { join(); }

  enum class Submit { taken, full };
  // When full, `connection` stays with the caller.
  Submit submit(AcceptedConnection& connection);
  // Even when full: for a caller that knows of a thread about to become free.
  void enqueue(AcceptedConnection connection);
  // Drops what waits, lets the others end.
  void join();

 private:
  void work();
  bool start_thread();

  std::size_t most_;
  std::function<void(AcceptedConnection)> serve_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<AcceptedConnection> waiting_{};
  std::vector<std::thread> threads_{};
  std::size_t idle_ = 0;
  bool ending_ = false;
};

}  // namespace fuse
