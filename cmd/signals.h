#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

namespace fuse::cmd {

// While it lives, signals go to a handler instead of their usual effect.
class SignalWatch {
 public:
  virtual ~SignalWatch() = default;
};

using SignalHandler = std::function<void(int number)>;
// Starts a watch.  The handler is called in a thread of the watch's own.
using WatchSignals = std::function<std::unique_ptr<SignalWatch>(const std::vector<int>& numbers,
                                                                SignalHandler handler)>;

// The real one: by signalfd(2).  The signals are blocked in the calling thread
// and in those it starts from then on, so watch before starting any.  Signals
// that are ignored already, as under nohup(1), stay so.
std::unique_ptr<SignalWatch> watch_signals(const std::vector<int>& numbers, SignalHandler handler);

}  // namespace fuse::cmd
