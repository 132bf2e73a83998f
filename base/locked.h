#pragma once

#include <mutex>
#include <utility>

namespace fuse {

// A value that can be reached only while its mutex is held:
//   hosts.with([](auto& map) { map.erase(id); });
template <class T>
class Locked {
 public:
  Locked() = default;
  explicit Locked(T value) : value_(std::move(value)) {}

  template <class F>
  auto with(F&& body) {
    const std::scoped_lock lock(mutex_);
    return std::forward<F>(body)(value_);
  }
  template <class F>
  auto with(F&& body) const {
    const std::scoped_lock lock(mutex_);
    return std::forward<F>(body)(value_);
  }

 private:
  mutable std::mutex mutex_;
  T value_{};
};

}  // namespace fuse
