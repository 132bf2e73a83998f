#include "hostmode/guest_line.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "hostmode/unix_socket.h"
#include "hostmode/vm_paths.h"

namespace fuse {

GuestLine::GuestLine(fs::path dir, Context context, std::unique_ptr<GuestClient> first)
    : dir_(std::move(dir)), context_(std::move(context)) {
  if (first != nullptr) set_up(std::move(first), {});
  thread_ = std::jthread([this](std::stop_token stop) { run(std::move(stop)); });
}

GuestLine::~GuestLine() {
  close();
}

Result<std::shared_ptr<GuestClient>> GuestLine::client(std::chrono::milliseconds patience,
                                                       std::stop_token stop) {
  std::unique_lock lock(mutex_);
  if (!connected()) look_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, std::move(stop), patience, [&] { return connected() || closed_; });
  if (connected()) return client_;
  return Error{ErrorCode::unreachable, "the agent in the guest does not answer"};
}

void GuestLine::look_now() {
  const std::scoped_lock lock(mutex_);
  look_ = true;
  changed_.notify_all();
}

void GuestLine::await_break(std::chrono::milliseconds patience) {
  std::shared_ptr<GuestClient> current;
  {
    const std::scoped_lock lock(mutex_);
    current = client_;
  }
  // The client has no way to tell: it is looked at.
  const auto deadline = context_.clock.steady() + patience;
  while (current != nullptr && current->alive() && context_.clock.steady() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void GuestLine::close() {
  std::shared_ptr<GuestClient> last;
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    last = std::move(client_);
    client_ = nullptr;
    changed_.notify_all();
  }
  thread_.request_stop();
  if (last != nullptr) last->close();
  if (thread_.joinable()) thread_.join();
}

Result<std::unique_ptr<GuestClient>> GuestLine::connect(std::chrono::milliseconds hello,
                                                        std::stop_token stop) const {
  auto socket = connect_unix(dir_, vm_file::channel_socket);
  if (!socket) return socket.error();
  return GuestClient::connect(std::move(socket).value(), {.hello = hello}, std::move(stop));
}

void GuestLine::set_up(std::unique_ptr<GuestClient> fresh, std::stop_token stop) {
  if (auto set = fresh->set_clock(context_.clock.wall(), std::move(stop)); !set) {
    context_.log.warning("cannot set the guest's clock", {{"reason", set.error().message}});
  }
  context_.on_hello(fresh->hello());
  const std::scoped_lock lock(mutex_);
  if (closed_) return;
  client_ = std::move(fresh);
  changed_.notify_all();
}

void GuestLine::run(std::stop_token stop) {
  auto retry = context_.limits.first_retry;
  auto hello = context_.limits.first_hello;
  while (!stop.stop_requested()) {
    std::shared_ptr<GuestClient> current;
    {
      std::unique_lock lock(mutex_);
      if (closed_) return;
      if (connected()) {
        changed_.wait_for(lock, stop, context_.limits.clock_interval,
                          [&] { return !connected() || look_; });
        look_ = false;
      }
      if (connected()) current = client_;
    }
    if (stop.stop_requested()) return;
    if (current != nullptr) {
      // Also how a connection that died in silence is found out.
      (void)current->set_clock(context_.clock.wall(), stop);
      continue;
    }
    auto fresh = connect(hello, stop);
    if (fresh) {
      retry = context_.limits.first_retry;
      hello = context_.limits.first_hello;
      set_up(std::move(fresh).value(), stop);
      continue;
    }
    context_.log.debug("the guest does not answer yet", {{"reason", fresh.error().message}});
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, retry, [&] { return look_; });
    look_ = false;
    retry = std::min(retry * 2, context_.limits.last_retry);
    hello = std::min(hello * 2, context_.limits.hello);
  }
}

}  // namespace fuse
