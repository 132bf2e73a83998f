#include "cmd/terminal.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

namespace fuse::cmd {

namespace {

class PosixRawMode final : public RawMode {
 public:
  explicit PosixRawMode(const termios& before) : before_(before) {}
  PosixRawMode(const PosixRawMode&) = delete;
  PosixRawMode& operator=(const PosixRawMode&) = delete;
  PosixRawMode(PosixRawMode&&) = delete;
  PosixRawMode& operator=(PosixRawMode&&) = delete;
  ~PosixRawMode() override { ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_); }

 private:
  termios before_;
};

}  // namespace

bool PosixTerminal::in_is_terminal() const {
  return ::isatty(STDIN_FILENO) == 1;
}
bool PosixTerminal::out_is_terminal() const {
  return ::isatty(STDOUT_FILENO) == 1;
}
bool PosixTerminal::err_is_terminal() const {
  return ::isatty(STDERR_FILENO) == 1;
}

WindowSize PosixTerminal::size() const {
  winsize size{};
  for (const int fd : {STDOUT_FILENO, STDIN_FILENO, STDERR_FILENO}) {
    if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
      return {.rows = size.ws_row, .cols = size.ws_col};
    }
  }
  return {};
}

int PosixTerminal::input_fd() const {
  return STDIN_FILENO;
}

Result<std::unique_ptr<RawMode>> PosixTerminal::raw_mode() {
  termios before{};
  if (::tcgetattr(STDIN_FILENO, &before) != 0) {
    return errno_error("read the terminal's settings", errno);
  }
  termios raw = before;
  ::cfmakeraw(&raw);
  if (::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) != 0) {
    return errno_error("change the terminal's settings", errno);
  }
  return std::unique_ptr<RawMode>(std::make_unique<PosixRawMode>(before));
}

}  // namespace fuse::cmd
