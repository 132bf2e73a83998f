#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "orchestrator/sql.h"

namespace fuse {

using OpenSql = std::function<Result<std::unique_ptr<SqlConnection>>()>;

// Connections to one database, opened as they are needed.  Safe from several
// threads.
class SqlPool {
 public:
  SqlPool(OpenSql open, std::size_t most) : open_(std::move(open)), most_(most) {}
  // Of one connection that cannot be opened again: that of a file.
  explicit SqlPool(std::unique_ptr<SqlConnection> only) : most_(1), opened_(1) {
    idle_.push_back(std::move(only));
  }

  // A connection for as long as it lives; one that broke is not used again.
  class Lease {
   public:
    Lease(SqlPool& pool, std::unique_ptr<SqlConnection> connection)
        : pool_(&pool), connection_(std::move(connection)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
      if (connection_ != nullptr) pool_->put_back(std::move(connection_));
    }
    [[nodiscard]] SqlConnection& sql() const { return *connection_; }

   private:
    SqlPool* pool_;
    std::unique_ptr<SqlConnection> connection_;
  };
  // Waits until one is free.
  Result<Lease> take();

 private:
  void put_back(std::unique_ptr<SqlConnection> connection);

  OpenSql open_{};
  std::size_t most_;
  std::mutex mutex_{};
  std::condition_variable freed_{};
  std::size_t opened_ = 0;                              // by mutex_
  std::vector<std::unique_ptr<SqlConnection>> idle_{};  // by mutex_
};

}  // namespace fuse
