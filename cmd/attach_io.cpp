#include "cmd/attach_io.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <ostream>

#include "net/attach_frames.h"

namespace fuse::cmd {

namespace {

constexpr std::size_t piece = 32U << 10U;

bool write(std::ostream& out, std::string_view bytes) {
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.flush();
  return out.good();
}

}  // namespace

InputPump::InputPump(AttachSession& session, int fd)
    : session_(session), end_(::eventfd(0, EFD_CLOEXEC)), thread_([this, fd] { work(fd); }) {}

InputPump::~InputPump() {
  const std::uint64_t one = 1;
  (void)!::write(end_.get(), &one, sizeof one);
  thread_.join();
}

void InputPump::work(int fd) const {
  std::array<char, piece> buffer{};
  for (;;) {
    std::array<pollfd, 2> events = {pollfd{.fd = fd, .events = POLLIN, .revents = 0},
                                    pollfd{.fd = end_.get(), .events = POLLIN, .revents = 0}};
    if (::poll(events.data(), events.size(), -1) < 0) continue;
    if (events[1].revents != 0) return;
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    const std::size_t size = count > 0 ? static_cast<std::size_t>(count) : 0;
    const auto sent = session_.write(
        {.type = AttachFrameType::stdin_bytes, .payload = std::string(buffer.data(), size)});
    if (!sent || size == 0) return;
  }
}

Result<AttachEnd> write_output(Context& context, AttachSession& session) {
  for (;;) {
    const auto frame = session.read();
    if (!frame) return frame.error();
    if (!*frame) return AttachEnd{};
    const AttachFrame& got = **frame;
    if (got.type == AttachFrameType::exit) return AttachEnd{.exit_code = parse_exit(got.payload)};
    bool open = true;
    if (got.type == AttachFrameType::stdout_bytes) open = write(context.out, got.payload);
    if (got.type == AttachFrameType::stderr_bytes) open = write(context.err, got.payload);
    if (!open) return AttachEnd{.output_closed = true};
  }
}

}  // namespace fuse::cmd
