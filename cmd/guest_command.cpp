#include "cmd/guest_command.h"

#include <thread>

#include "base/text.h"
#include "net/attach_frames.h"

namespace fuse::cmd {

namespace {

constexpr std::size_t most_in_a_frame = 32U << 10U;
constexpr std::size_t most_complaint = 4096;

// Feeds a session from a thread of its own.
class Feeder {
 public:
  Feeder(AttachSession& session, const GuestInput& input)
      : thread_([this, &session, &input] { feed(session, input); }) {}
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;
  ~Feeder() { join(); }

  // Call it after the session has ended or was closed.
  std::optional<Error> join() {
    if (thread_.joinable()) thread_.join();
    return problem_;
  }

 private:
  void feed(AttachSession& session, const GuestInput& input) {
    bool taken = true;
    const auto fed = input([&](std::string_view bytes) {
      while (taken && !bytes.empty()) {
        const std::string_view part = bytes.substr(0, most_in_a_frame);
        taken = session.write({.type = AttachFrameType::stdin_bytes, .payload = std::string(part)})
                    .has_value();
        bytes.remove_prefix(part.size());
      }
      return taken;
    });
    // What the command makes of an input that broke off is nobody's wish.
    if (!fed && taken) {
      problem_ = fed.error();
      session.close();
    } else if (taken) {
      (void)session.write({.type = AttachFrameType::stdin_bytes});
    }
  }

  std::optional<Error> problem_{};
  std::thread thread_;
};

struct Outcome {
  std::optional<int> code{};
  std::string complaint{};
  bool unwanted = false;
};

Result<Outcome> read_session(AttachSession& session, const ByteSink& output) {
  Outcome outcome;
  for (;;) {
    const auto frame = session.read();
    if (!frame) return frame.error();
    if (!*frame) return outcome;
    const AttachFrame& got = **frame;
    if (got.type == AttachFrameType::exit) {
      outcome.code = parse_exit(got.payload);
      return outcome;
    }
    if (got.type == AttachFrameType::stderr_bytes) {
      std::string& kept = outcome.complaint;
      kept += got.payload;
      if (kept.size() > most_complaint) kept.erase(0, kept.size() - most_complaint);
    }
    if (got.type == AttachFrameType::stdout_bytes && output && !output(got.payload)) {
      outcome.unwanted = true;
      return outcome;
    }
  }
}

Error only_terminals(const std::string& id) {
  return {ErrorCode::unimplemented,
          cat("the orchestrator of ", id, " only carries terminals, which bytes do not survive")};
}

}  // namespace

Result<GuestCommandEnd> run_in_guest(EnvironmentApi& api, const std::string& id,
                                     const GuestCommand& command) {
  const auto session = api.attach(id, {.cmd = command.argv, .tty = false});
  if (!session) {
    const bool needs_terminal = session.error().code == ErrorCode::invalid_argument &&
                                session.error().message.find("tty=1") != std::string::npos;
    return needs_terminal ? only_terminals(id) : session.error();
  }
  const std::stop_callback end(command.stop, [&session] { (*session)->close(); });
  std::optional<Feeder> feeder;
  if (command.input) {
    feeder.emplace(**session, command.input);
  } else {
    (void)(*session)->write({.type = AttachFrameType::stdin_bytes});
  }
  auto outcome = read_session(**session, command.output);
  (*session)->close();
  if (feeder) {
    if (const auto problem = feeder->join(); problem && !command.stop.stop_requested()) {
      return *problem;
    }
  }
  if (command.stop.stop_requested()) return Error{ErrorCode::unavailable, "interrupted"};
  if (!outcome) return outcome.error();
  if (outcome->unwanted) return Error{ErrorCode::unavailable, "the output is not wanted any more"};
  if (!outcome->code) {
    return Error{ErrorCode::unreachable, cat("the connection to ", id, " broke off")};
  }
  return GuestCommandEnd{.code = *outcome->code, .complaint = std::move(outcome->complaint)};
}

}  // namespace fuse::cmd
