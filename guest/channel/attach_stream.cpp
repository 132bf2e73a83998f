#include "guest/channel/attach_stream.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"

namespace fuse {

namespace {

class ChannelAttachSession final : public AttachSession {
 public:
  explicit ChannelAttachSession(HostStream stream) : stream_(std::move(stream)) {}

  Result<std::optional<AttachFrame>> read() override {
    while (!over_) {
      if (auto ready = stream_.wait(HostStream::Want::frame, closing_.get_token()); !ready) {
        over_ = true;
        if (closing_.stop_requested()) break;
        return ready.error();
      }
      if (auto frame = stream_.read()) {
        // The guest says that a pipe has ended with a frame that may be empty.
        if (frame->payload.empty()) continue;
        const bool is_err = (frame->flags & pipe_mask) == pipe_err;
        return std::optional(
            AttachFrame{is_err ? AttachFrameType::stderr_bytes : AttachFrameType::stdout_bytes,
                        std::move(frame->payload)});
      }
      if (auto result = stream_.result()) return last_frame(*result);
    }
    return std::optional<AttachFrame>();
  }

  Result<void> write(const AttachFrame& frame) override {
    switch (frame.type) {
      case AttachFrameType::stdin_bytes:
        return send(pipe_in, frame.payload, frame.payload.empty());
      case AttachFrameType::resize:
        return send(pipe_control, frame.payload, false);
      default:
        return Error{ErrorCode::invalid_argument, "a frame that only a guest sends"};
    }
  }

  void close() override {
    closing_.request_stop();
    stream_.cancel();
  }

 private:
  Result<std::optional<AttachFrame>> last_frame(const Result<std::string>& result) {
    over_ = true;
    if (!result) return result.error();
    const auto ended = parse_guest_exec_result(*result);
    if (!ended) return ended.error();
    const nlohmann::json exit = {{"exit_code", ended->status.shell_code()}};
    return std::optional(AttachFrame{AttachFrameType::exit, exit.dump()});
  }

  // Input for a process that has ended is taken and forgotten, as a terminal does.
  Result<void> send(std::uint8_t pipe, std::string_view bytes, bool end) {
    while (stream_.send(pipe, bytes, end) == HostStream::Sent::some) {
      if (auto ready = stream_.wait(HostStream::Want::credit, closing_.get_token()); !ready)
        return ready.error();
      if (stream_.ended()) return {};
    }
    return {};
  }

  HostStream stream_;
  std::stop_source closing_{};
  bool over_ = false;  // the reader's own
};

}  // namespace

std::unique_ptr<AttachSession> make_attach_session(HostStream stream) {
  return std::make_unique<ChannelAttachSession>(std::move(stream));
}

}  // namespace fuse
