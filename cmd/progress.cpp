#include "cmd/progress.h"

#include <algorithm>
#include <condition_variable>
#include <ostream>

#include "base/text.h"
#include "base/units.h"
#include "cmd/output.h"

namespace fuse::cmd {

namespace {

constexpr std::size_t label_width = 14;
constexpr std::size_t text_width = 44;
constexpr std::chrono::seconds sign_of_life{15};

}  // namespace

std::string step_label(const EnvironmentEvent& event) {
  std::string label = event.key;
  std::ranges::replace(label, '_', ' ');
  if (event.total > 0 && event.index > 0) label += cat(" ", event.index, "/", event.total);
  return label;
}

Progress::Progress(std::ostream& out, Clock& clock, ProgressOptions options)
    : out_(out), clock_(clock), options_(options) {}

Progress::~Progress() {
  const std::scoped_lock lock(mutex_);
  erase();
}

void Progress::step(const EnvironmentEvent& event) {
  if (options_.style == ProgressStyle::none) return;
  const std::scoped_lock lock(mutex_);
  if (event.duration_ms || event.exit_code || !event.error.empty()) {
    finish(event);
    return;
  }
  // The same step told again, after a reconnect or with more to say.
  if (current_ && current_->label == step_label(event)) {
    if (!event.message.empty()) current_->text = printable(event.message);
  } else {
    const SteadyTime now = clock_.steady();
    current_ = Current{
        .label = step_label(event), .text = printable(event.message), .since = now, .said = now};
  }
  draw();
}

void Progress::finish(const EnvironmentEvent& event) {
  const std::string label = step_label(event);
  std::string text = printable(event.message);
  std::string time;
  if (current_ && current_->label == label) {
    if (text.empty()) text = current_->text;
    time = human_duration(clock_.steady() - current_->since);
    current_.reset();
  }
  if (event.duration_ms) time = human_duration(std::chrono::milliseconds(*event.duration_ms));
  const bool failed = event.exit_code.value_or(0) != 0 || !event.error.empty();
  if (failed) {
    text += cat(text.empty() ? "" : ": ",
                event.exit_code ? cat("exit ", *event.exit_code) : printable(event.error));
  }
  write_step(label, text, time, failed);
  draw();
}

void Progress::write_step(const std::string& label, const std::string& text,
                          const std::string& right, bool failed) {
  erase();
  const bool red = failed && options_.colour;
  out_ << (red ? "\x1b[31m" : "") << "  " << padded(label, label_width) << " "
       << padded(text, text_width) << "  " << right << (red ? "\x1b[0m" : "") << '\n'
       << std::flush;
}

void Progress::line(std::string_view text) {
  if (options_.style == ProgressStyle::none) return;
  const std::scoped_lock lock(mutex_);
  erase();
  out_ << text << '\n' << std::flush;
  draw();
}

void Progress::stop_live() {
  const std::scoped_lock lock(mutex_);
  erase();
  if (options_.style == ProgressStyle::live) options_.style = ProgressStyle::plain;
}

void Progress::tick() {
  const std::scoped_lock lock(mutex_);
  if (!current_) return;
  if (options_.style == ProgressStyle::live) {
    draw();
  } else if (options_.style == ProgressStyle::plain &&
             clock_.steady() - current_->said >= sign_of_life) {
    current_->said = clock_.steady();
    write_step(current_->label, current_->text,
               cat(human_duration(clock_.steady() - current_->since), " so far"), false);
  }
}

void Progress::draw() {
  if (options_.style != ProgressStyle::live || !current_) return;
  const auto elapsed = std::chrono::floor<std::chrono::seconds>(clock_.steady() - current_->since);
  std::string text = cat("  ", padded(current_->label, label_width), " ",
                         padded(current_->text, text_width), "  ", human_duration(elapsed));
  // A line that wraps could not be taken back.
  const auto most = static_cast<std::size_t>(std::max(options_.columns - 1, 20));
  if (width_of(text) > most) text.resize(std::min(text.size(), most));
  erase();
  out_ << (options_.colour ? "\x1b[2m" : "") << valid_utf8(text)
       << (options_.colour ? "\x1b[0m" : "") << std::flush;
  drawn_ = true;
}

void Progress::erase() {
  if (!drawn_) return;
  out_ << "\r\x1b[K" << std::flush;
  drawn_ = false;
}

ProgressTicker::ProgressTicker(Progress& progress, ProgressStyle style) {
  if (style == ProgressStyle::none) return;
  thread_ = std::jthread([&progress](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      wake.wait_for(lock, stop, std::chrono::milliseconds(200), [] { return false; });
      if (!stop.stop_requested()) progress.tick();
    }
  });
}

}  // namespace fuse::cmd
