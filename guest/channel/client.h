#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/host.h"
#include "base/result.h"
#include "guest/channel/messages.h"
#include "orchestrator/api/host_agent.h"
#include "orchestrator/api/streams.h"

namespace fuse {

class HostLink;

struct GuestLimits {
  // How long connect() waits for the guest's answer.  Bytes wait in the channel
  // until the guest opens its port, so a boot's whole time may be given here.
  std::chrono::milliseconds hello{2000};
  // A connection on which calls wait and nothing has been heard for this long is
  // asked for a sign of life, and given up after as long again.
  std::chrono::milliseconds silence{30000};
};

// The host's end of a guest's channel: one connection and the calls on it, each
// on a stream of its own.  Calls block and may come from several threads at once;
// a slow one does not hold up the others.  When the connection dies each call
// ends with `unreachable` and every later one too: connect again.  A call that a
// stop token interrupts ends with `unavailable`, and what it started in the guest
// is killed, except for a job, which goes on.
class GuestClient {
 public:
  // Takes the connected socket of a guest's channel, wakes the guest and waits for
  // its hello.  `unreachable` when none comes: nothing listens in the guest yet,
  // or another process holds the channel.
  static Result<std::unique_ptr<GuestClient>> connect(Fd socket, const GuestLimits& limits,
                                                      std::stop_token stop = {});
  GuestClient(const GuestClient&) = delete;
  GuestClient& operator=(const GuestClient&) = delete;
  // As close().
  ~GuestClient();

  // What the guest said when the connection began.
  [[nodiscard]] const GuestHello& hello() const;
  // False once the connection has died or was closed.
  [[nodiscard]] bool alive() const;
  // Ends the connection and all calls on it; joins the reader.
  void close();

  // Runs a command to its end.  Output beyond the command's `most_output` is
  // dropped and said to be.  A timeout kills its whole process group.
  Result<GuestExecResult> exec(const GuestExec& command, std::stop_token stop = {});
  // Writes a file whole (temporary file, rename), with its missing parents.
  // Under /fuse folders are 0700 and files 0600 unless a mode is given.
  Result<void> upload(const UploadFile& file, std::stop_token stop = {});
  // Opens a session; `env` is laid over the guest's own defaults.
  Result<std::unique_ptr<AttachSession>> open_attach(
      const AttachRequest& request, const std::map<std::string, std::string>& env = {});
  // Everything is delivered: begins what /fuse asks for beside the job.  Returns once
  // its services are up, which may take as long as their images take to arrive.
  Result<void> begin(std::stop_token stop = {});
  // conflict when the guest has had a job, unless it came with the same `key`:
  // then it is the answer to a retry, and success.
  Result<void> start_job(const std::string& key, const JobSpec& job, std::stop_token stop = {});
  // not_found when there never was a job.
  Result<GuestJob> job_status(std::stop_token stop = {});
  // Hands the log's bytes from `offset` on to the sink, with `follow` until the
  // job has ended and all of it is out.  LogRange.begin is beyond the offset when
  // what was there had been acknowledged.  invalid_argument for an offset beyond
  // the end, not_found without a job.  Ends early, with what was handed over, when
  // the sink answers false.
  Result<LogRange> read_log(const GuestLogQuery& query, const ByteSink& sink,
                            std::stop_token stop = {});
  // Sends TERM to the job, and KILL after the grace (0: 30 s).  Answers at once;
  // success when it has ended already, not_found without a job.
  Result<void> stop_job(std::chrono::seconds grace = {}, std::stop_token stop = {});
  // Sets the guest's clock when it is off by more than a second.
  Result<void> set_clock(WallTime now, std::stop_token stop = {});
  // Ends the job, syncs the disks and powers the guest off.  Answers before the
  // power is gone.
  Result<void> shutdown(std::stop_token stop = {});

 private:
  explicit GuestClient(std::shared_ptr<HostLink> link);
  std::shared_ptr<HostLink> link_;
};

}  // namespace fuse
