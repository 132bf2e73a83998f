#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "orchestrator/api/streams.h"
#include "orchestrator/api/types.h"

namespace fuse {

struct CreateOptions {
  bool respond_async = false;  // answer once it is placed (Prefer: respond-async)
};

struct EnvironmentFilter {
  std::string task_id{};
  std::string state{};
  std::string host_id{};
  bool include_ended = false;
  std::int64_t limit = 0;  // 0: the default of 50
  std::string cursor{};
};

struct EnvironmentPage {
  std::vector<Environment> environments{};
  std::string next_cursor{};  // empty on the last page
};

// Exactly one of cmd and shell.
struct ExecRequest {
  std::vector<std::string> cmd{};
  std::string shell{};
  std::int64_t timeout_ms = 0;  // 0 or less: 60 s; at most 600 s
};

// Output as the guest wrote it; invalid UTF-8 is replaced only on the wire.
struct ExecResult {
  std::int32_t exit_code = 0;
  std::string out{};
  std::string err{};
};

struct EventQuery {
  std::string last_event_id{};  // resume after it; empty: from the current state
  bool all_kinds = false;       // also "job" events
};

// Takes events in order; false ends the stream.
using EventSink = std::function<bool(const EnvironmentEvent& event)>;

// What can be done with environments, near or far: the orchestrator's service
// implements it, and so does its HTTP client.  `id` means the live environment
// of that id, else, where history is asked for, the newest ended one; a uid
// names one incarnation.  Safe from several threads.
class EnvironmentApi {
 public:
  virtual ~EnvironmentApi() = default;
  // conflict when the task is alive; unavailable with details.reason=placement
  // when nothing can take it.
  virtual Result<Environment> create(const CreateEnvironmentRequest& request,
                                     const CreateOptions& options) = 0;
  virtual Result<EnvironmentPage> list(const EnvironmentFilter& filter) = 0;
  virtual Result<Environment> get(const std::string& id, bool include_ended) = 0;
  virtual Result<void> destroy(const std::string& id) = 0;
  virtual Result<ExecResult> exec(const std::string& id, const ExecRequest& request) = 0;
  virtual Result<std::unique_ptr<AttachSession>> attach(const std::string& id,
                                                        const AttachRequest& request) = 0;
  // Ends the job: TERM, its grace, KILL.  The environment stays as on_exit
  // says.
  virtual Result<void> stop_job(const std::string& id) = 0;
  // Lets nothing new begin in it: no command, no terminal.  Its job goes on.  An error
  // of the guest's leaves it draining all the same.
  virtual Result<Environment> drain(const std::string& id) = 0;
  // Gives the guest's own server a new certificate and token.
  virtual Result<void> rotate_token(const std::string& id) = 0;
  // Blocks, handing on events until destroyed or failed, the sink's false or
  // `stop`.
  virtual Result<void> events(const std::string& id, const EventQuery& query, const EventSink& sink,
                              std::stop_token stop) = 0;
  // Blocks likewise; also answers after the environment ended.
  virtual Result<LogRange> logs(const std::string& id, const LogQuery& query, const ByteSink& sink,
                                std::stop_token stop) = 0;
};

}  // namespace fuse
