#include "guest/pty.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace fuse {

Result<Pty> open_pty(TerminalSize size) {
  Fd outer(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!outer.valid()) return errno_error("open a terminal", errno);
  if (::grantpt(outer.get()) < 0 || ::unlockpt(outer.get()) < 0) {
    return errno_error("unlock a terminal", errno);
  }
  // By descriptor rather than by name: /dev/pts may be another one there.
  Fd inner(::ioctl(outer.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!inner.valid()) return errno_error("open the inner end of a terminal", errno);
  termios settings{};
  if (::tcgetattr(inner.get(), &settings) == 0) {
    settings.c_iflag |= IUTF8;
    ::tcsetattr(inner.get(), TCSANOW, &settings);
  }
  set_terminal_size(inner.get(), size);
  return Pty{.outer = std::move(outer), .inner = std::move(inner)};
}

void set_terminal_size(int fd, TerminalSize size) {
  winsize window{};
  window.ws_row = static_cast<unsigned short>(size.rows);
  window.ws_col = static_cast<unsigned short>(size.cols);
  ::ioctl(fd, TIOCSWINSZ, &window);
}

}  // namespace fuse
