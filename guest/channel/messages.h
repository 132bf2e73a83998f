#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/host.h"
#include "base/result.h"
#include "orchestrator/api/attach_payloads.h"
#include "orchestrator/api/host_agent.h"
#include "orchestrator/api/types.h"

// What host and guest say to each other.  A stream is opened with one operation,
// written as JSON; bytes follow as data (a file, input, output, a log); it is
// closed with the operation's result or ended with an error.
namespace fuse {

inline constexpr std::int32_t guest_protocol = 1;
// An operation's text may go on in data frames of the control pipe, up to this.
inline constexpr std::size_t most_operation_text = 32U << 20U;

// A job as its guest knows it.
struct GuestJob {
  std::string key{};      // what start_job was given
  std::string boot_id{};  // of the guest's boot in which it ran
  JobStatus status{};
};

// What the agent in the guest says of itself when a connection begins.
struct GuestHello {
  std::int32_t protocol = 0;
  std::string version{};
  std::string build{};
  std::string boot_id{};
  std::string hostname{};
  std::chrono::milliseconds uptime{};
  std::optional<GuestJob> job{};
};

// A command to run in the guest, without a shell unless argv names one.
struct GuestExec {
  std::vector<std::string> argv{};
  std::map<std::string, std::string> env{};  // over the guest's defaults
  std::string workdir{};                     // empty: /
  std::string input{};                       // its stdin
  std::chrono::milliseconds timeout{};       // 0: none
  std::size_t most_output = 16U << 20U;      // bytes of each stream that are kept
};

struct GuestExecResult {
  ExitStatus status{};
  bool timed_out = false;
  bool truncated = false;  // there was more output than was to be kept
  std::string out{};
  std::string err{};
};

// Which part of a job's log, and whether what comes before it is safe.
struct GuestLogQuery {
  std::uint64_t offset = 0;
  bool follow = false;
  // The caller keeps the log: everything before `offset`, and then every piece
  // for which the sink answered true, may be deleted in the guest.
  bool acknowledge = false;
};

// The operations.  Data is on the pipes named in the comments.

// in: stdin; out, err: output; result: GuestExecResult without the output.
struct ExecOperation {
  GuestExec command{};     // its input and most_output stay with the client
  bool has_input = false;  // otherwise stdin is /dev/null
};
// in: the file's bytes, `end` after the last.
struct UploadOperation {
  std::string path{};
  std::uint32_t mode = 0;
};
// in: stdin, `end` closes it; control: {"rows", "cols"}; out, err: output;
// result: GuestExecResult.
struct AttachOperation {
  AttachRequest request{};
  std::map<std::string, std::string> env{};
};
// Everything is delivered: begins what /fuse asks for beside the job, services first,
// then its health check; anew, when that was begun before.  Answered once the
// services are up.
struct BeginOperation {};
struct JobStartOperation {
  std::string key{};
  JobSpec spec{};
};
// result: GuestJob.
struct JobStatusOperation {};
// out: the log, after 8 bytes with the offset at which it begins; in, with
// acknowledge: offsets of 8 bytes up to which it may be deleted; result: LogRange.
struct JobLogOperation {
  GuestLogQuery query{};
};
struct JobStopOperation {
  std::int64_t grace_seconds = 0;
};
struct ClockOperation {
  WallTime now{};
};
struct ShutdownOperation {};

using Operation = std::variant<ExecOperation, UploadOperation, AttachOperation, BeginOperation,
                               JobStartOperation, JobStatusOperation, JobLogOperation,
                               JobStopOperation, ClockOperation, ShutdownOperation>;

// Texts are JSON in ASCII.  invalid_argument for strings that are not UTF-8, which
// JSON cannot carry.
Result<std::string> operation_text(const Operation& operation);
Result<Operation> parse_operation(std::string_view text);

std::string hello_text(const GuestHello& hello);
Result<GuestHello> parse_hello(std::string_view text);
std::string exec_result_text(const GuestExecResult& result);
Result<GuestExecResult> parse_guest_exec_result(std::string_view text);
std::string guest_job_text(const GuestJob& job);
Result<GuestJob> parse_guest_job(std::string_view text);
std::string log_range_text(const LogRange& range);
Result<LogRange> parse_log_range(std::string_view text);
// The message is cut to what fits a frame.
std::string error_text(const Error& error);
// Of any text: what cannot be read is an internal error that says so.
Error parse_error_text(std::string_view text);

}  // namespace fuse
