#include "orchestrator/sql_pool.h"

namespace fuse {

Result<SqlPool::Lease> SqlPool::take() {
  {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [this] { return !idle_.empty() || opened_ < most_; });
    if (!idle_.empty()) {
      std::unique_ptr<SqlConnection> connection = std::move(idle_.back());
      idle_.pop_back();
      return Lease(*this, std::move(connection));
    }
    ++opened_;
  }
  auto made = open_();
  if (made) return Lease(*this, *std::move(made));
  {
    const std::scoped_lock lock(mutex_);
    --opened_;
  }
  freed_.notify_one();
  return made.error();
}

void SqlPool::put_back(std::unique_ptr<SqlConnection> connection) {
  {
    const std::scoped_lock lock(mutex_);
    // What cannot be opened again is kept, whatever became of it.
    if (connection->usable() || !open_) {
      idle_.push_back(std::move(connection));
    } else {
      --opened_;
    }
  }
  freed_.notify_one();
}

}  // namespace fuse
