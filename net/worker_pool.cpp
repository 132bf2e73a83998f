#include "net/worker_pool.h"

#include <system_error>
#include <utility>

namespace fuse {

WorkerPool::WorkerPool(std::size_t most, std::function<void(AcceptedConnection)> serve)
    : most_(most), serve_(std::move(serve)) {}

bool WorkerPool::start_thread() {
  if (threads_.size() >= most_) return false;
  try {
    threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    return false;  // the kernel has no more threads for us: that is a full pool, too
  }
  return true;
}

WorkerPool::Submit WorkerPool::submit(AcceptedConnection& connection) {
  const std::scoped_lock lock(mutex_);
  if (ending_) return Submit::full;
  if (idle_ <= waiting_.size() && !start_thread()) return Submit::full;
  waiting_.push_back(std::move(connection));
  wake_.notify_one();
  return Submit::taken;
}

void WorkerPool::enqueue(AcceptedConnection connection) {
  const std::scoped_lock lock(mutex_);
  waiting_.push_back(std::move(connection));
  wake_.notify_one();
}

void WorkerPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    wake_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    --idle_;
    if (ending_) return;
    AcceptedConnection connection = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    serve_(std::move(connection));
    lock.lock();
  }
}

void WorkerPool::join() {
  std::vector<std::thread> threads;
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
    waiting_.clear();
    threads.swap(threads_);
    wake_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace fuse
