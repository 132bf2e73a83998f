#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "orchestrator/api/types.h"

namespace fuse::cmd {

enum class ProgressStyle {
  none,   // nothing at all
  plain,  // a line for each step that ended, and a sign of life in long ones
  live,   // the current step with its running time, rewritten in place
};

struct ProgressOptions {
  ProgressStyle style = ProgressStyle::plain;
  bool colour = false;
  int columns = 80;
};

// What a "step" event is about: "create vm", "build 2/3".
std::string step_label(const EnvironmentEvent& event);

// Shows the steps of a create as they happen.  Safe from several threads.
class Progress {
 public:
  Progress(std::ostream& out, Clock& clock, ProgressOptions options);
  ~Progress();  // takes a live line away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // A "step" event: the start of a step, or its end when it has a duration, an
  // exit code or an error.
  void step(const EnvironmentEvent& event);
  // A whole line, above a live one.
  void line(std::string_view text);
  // From now on lines only: somebody else writes to the same terminal.
  void stop_live();
  // Draws the running time again; called several times a second when live.
  void tick();

 private:
  struct Current {
    std::string label{};
    std::string text{};
    SteadyTime since{};
    SteadyTime said{};  // plain: when the last sign of life was given
  };
  void finish(const EnvironmentEvent& event);
  void write_step(const std::string& label, const std::string& text, const std::string& right,
                  bool failed);
  void draw();
  void erase();

  std::mutex mutex_;
  std::ostream& out_;
  Clock& clock_;
  ProgressOptions options_;
  std::optional<Current> current_{};
  bool drawn_ = false;
};

// Ticks a Progress from a thread of its own while it lives.
class ProgressTicker {
 public:
  ProgressTicker(Progress& progress, ProgressStyle style);

 private:
  std::jthread thread_{};
};

}  // namespace fuse::cmd
