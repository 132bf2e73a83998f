#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "base/result.h"
#include "guest/channel/client.h"

namespace fuse {

struct LineLimits {
  // For a guest that has said hello before to say it again: at first, since what is
  // asked while an older connection ends may be lost with it, and then up to the other.
  std::chrono::milliseconds first_hello{std::chrono::seconds(2)};
  std::chrono::milliseconds hello{std::chrono::seconds(10)};
  std::chrono::milliseconds first_retry{50};
  std::chrono::milliseconds last_retry{std::chrono::seconds(3)};
  // How often the guest's clock is compared.
  std::chrono::milliseconds clock_interval{std::chrono::seconds(60)};
};

// The connection to one guest's agent, made anew whenever it breaks.  Sets the
// guest's clock at each beginning and then regularly.  Safe from several threads.
class GuestLine {
 public:
  // Called on the line's thread with what the guest said, before anyone else can
  // use the new connection.
  using OnHello = std::function<void(const GuestHello& hello)>;

  struct Context {
    const Clock& clock;
    Log& log;
    LineLimits limits{};
    OnHello on_hello{};
  };

  // `dir` is the VM's folder; `first` an open connection, or null.
  GuestLine(fs::path dir, Context context, std::unique_ptr<GuestClient> first);
  GuestLine(const GuestLine&) = delete;
  GuestLine& operator=(const GuestLine&) = delete;
  ~GuestLine();

  // The connection, waiting up to `patience` for one.  unreachable when there is
  // none by then, or the line was closed.
  Result<std::shared_ptr<GuestClient>> client(std::chrono::milliseconds patience,
                                              std::stop_token stop = {});
  // A call ended with unreachable: connect again without waiting.
  void look_now();
  // Waits up to `patience` for the connection to have broken by itself.
  void await_break(std::chrono::milliseconds patience);
  // Ends the connection and all calls on it, for good.
  void close();

 private:
  void run(std::stop_token stop);
  void set_up(std::unique_ptr<GuestClient> fresh, std::stop_token stop);
  Result<std::unique_ptr<GuestClient>> connect(std::chrono::milliseconds hello,
                                               std::stop_token stop) const;
  [[nodiscard]] bool connected() const { return client_ != nullptr && client_->alive(); }

  fs::path dir_;
  Context context_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::shared_ptr<GuestClient> client_;
  bool look_ = false;
  bool closed_ = false;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace fuse
