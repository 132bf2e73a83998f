#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "guest/channel/messages.h"
#include "orchestrator/api/attach_payloads.h"

namespace fuse {

// A pseudo-terminal: what is written to one end comes out of the other.
struct Pty {
  Fd outer{};  // ours
  Fd inner{};  // the terminal of the process
};

Result<Pty> open_pty(TerminalSize size);
void set_terminal_size(int fd, TerminalSize size);

}  // namespace fuse
