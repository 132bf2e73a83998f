#include "hostmode/vm.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/text.h"

namespace fuse {

Result<std::unique_ptr<QemuWatch>> QemuWatch::begin(std::shared_ptr<QemuProcess> qemu,
                                                    Calls calls) {
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return errno_error("make an eventfd", errno);
  std::unique_ptr<QemuWatch> watch(new QemuWatch(std::move(wake)));
  const int wake_fd = watch->wake_.get();
  watch->thread_ = std::jthread(
      [qemu = std::move(qemu), calls = std::move(calls), wake_fd](const std::stop_token& stop) {
        const std::stop_callback on_stop(stop, [wake_fd] {
          const std::uint64_t one = 1;
          (void)!::write(wake_fd, &one, sizeof(one));
        });
        std::array<pollfd, 2> fds = {{{qemu->exit_fd(), POLLIN, 0}, {wake_fd, POLLIN, 0}}};
        while (!stop.stop_requested()) {
          const int interval = static_cast<int>(calls.interval.count());
          const int ready = ::poll(fds.data(), fds.size(), interval);
          if (ready < 0 && errno != EINTR) return;
          if (ready == 0) calls.on_look();
          if (ready <= 0 || fds[0].revents == 0) continue;
          calls.on_exit();
          return;
        }
      });
  return watch;
}

VmRecord Vm::record() const {
  const std::scoped_lock lock(mutex_);
  return record_;
}

Vm::Phase Vm::phase() const {
  const std::scoped_lock lock(mutex_);
  return phase_;
}

VmInfo Vm::info() const {
  const std::scoped_lock lock(mutex_);
  const bool alive = record_.state != VmState::ended;
  return {.vm_id = record_.vm_id,
          .uid = record_.uid,
          .url = "",
          .cluster = record_.cluster,
          .alive = alive,
          .ended = alive ? "" : record_.reason};
}

std::shared_ptr<VmSession> Vm::session() const {
  const std::scoped_lock lock(mutex_);
  return session_;
}

std::shared_ptr<QemuProcess> Vm::qemu() const {
  const std::scoped_lock lock(mutex_);
  return qemu_;
}

VmRecord Vm::note_destroying() {
  const std::scoped_lock lock(mutex_);
  record_.destroying = true;
  return record_;
}

void Vm::set_record(VmRecord record) {
  const std::scoped_lock lock(mutex_);
  record_ = std::move(record);
}

void Vm::run(std::shared_ptr<QemuProcess> qemu, std::shared_ptr<VmSession> session) {
  const std::scoped_lock lock(mutex_);
  qemu_ = std::move(qemu);
  session_ = std::move(session);
  phase_ = Phase::running;
  changed_.notify_all();
}

void Vm::fail(Error error) {
  const std::scoped_lock lock(mutex_);
  failure_ = std::move(error);
  phase_ = Phase::gone;
  changed_.notify_all();
}

Result<void> Vm::await_created() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return phase_ != Phase::creating; });
  if (failure_) return *failure_;
  return {};
}

void Vm::watch(std::unique_ptr<QemuWatch> watch) {
  const std::scoped_lock lock(mutex_);
  watch_ = std::move(watch);
}

void Vm::doom(const std::string& reason) {
  const std::scoped_lock lock(mutex_);
  if (record_.state != VmState::ended && record_.reason.empty()) record_.reason = reason;
}

void Vm::end_once(const std::function<void()>& settle) {
  std::call_once(ended_, [&] {
    settle();
    const std::scoped_lock lock(mutex_);
    if (phase_ == Phase::running) phase_ = Phase::ended;
    changed_.notify_all();
  });
}

bool Vm::begin_destroy() {
  (void)cancel_.request_stop();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return phase_ != Phase::creating && phase_ != Phase::destroying; });
  if (phase_ == Phase::gone) return false;
  phase_ = Phase::destroying;
  return true;
}

void Vm::end_destroy(bool done) {
  const std::scoped_lock lock(mutex_);
  const bool alive = record_.state == VmState::running;
  phase_ = done ? Phase::gone : (alive ? Phase::running : Phase::ended);
  changed_.notify_all();
}

}  // namespace fuse
