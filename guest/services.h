#pragma once

#include <functional>
#include <map>
#include <memory>

#include "base/host.h"
#include "base/result.h"
#include "guest/children.h"
#include "guest/command.h"
#include "guest/compose.h"
#include "guest/event_loop.h"

namespace fuse {

// Brings up what compose.yaml in `dir` asks for.
class Services {
 public:
  using OnUp = std::function<void(const Result<void>& outcome)>;

  // `root` is laid before the paths of what is looked for.
  Services(EventLoop& loop, Children& children, fs::path root, fs::path dir)
      : loop_(loop), children_(children), root_(std::move(root)), dir_(std::move(dir)) {}
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;
  ~Services() = default;

  // Calls `on_up`, from the loop, once they are up or have failed, unless forget()
  // came before; at once in effect without compose.yaml.  Who asks while they come up
  // waits for the same; later they are brought up again, which changes nothing about
  // those that are.
  int begin(OnUp on_up);
  void forget(int listener) { listeners_.erase(listener); }

 private:
  [[nodiscard]] fs::path at(const fs::path& path) const;
  Result<void> start();
  void await_daemon();
  // Starts a command of the agent's own, whose end `next` takes.
  using Next = void (Services::*)(const CommandResult& result);
  void run(const std::vector<std::string>& argv, Next next);
  void on_up(const CommandResult& result);
  void on_listed(const CommandResult& result);
  void finish(const Result<void>& outcome);

  EventLoop& loop_;
  Children& children_;
  fs::path root_;
  fs::path dir_;
  bool under_way_ = false;
  ComposePlan plan_{};
  std::string said_{};  // by what brought them up
  int looks_ = 0;       // for a daemon
  std::unique_ptr<Command> command_{};
  EventLoop::Registration timer_{};
  int next_listener_ = 1;
  std::map<int, OnUp> listeners_{};
};

}  // namespace fuse
