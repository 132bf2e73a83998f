#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "net/http_client.h"
#include "orchestrator/api/environment_api.h"
#include "remote/retry.h"

namespace fuse {

// Takes a line about the reading of a log: that a lost connection was taken up again,
// and what was missed.
using LogNews = std::function<void(const std::string& line)>;

struct RemoteOptions {
  // Tried when the server does not answer and before it is asked again: starts
  // a background process that has gone.  Absent: nothing can be done but wait.
  std::function<Result<void>()> revive{};
  // How long a stream that broke is taken up again without an answer.
  std::chrono::milliseconds patience{std::chrono::minutes(2)};
  // Absent: nobody is told.
  LogNews log_news{};
  // An interruption that is shorter is not worth a line.
  std::chrono::milliseconds short_break{std::chrono::seconds(3)};
};

// The orchestrator's API over HTTP.  Streams that break go on where they were:
// events after the last one seen, logs at the next byte.  An answer that is an
// error becomes the Error it carries; no answer is `unreachable` and names the
// place.
class RemoteEnvironments final : public EnvironmentApi {
 public:
  RemoteEnvironments(std::unique_ptr<HttpClient> http, Clock& clock, RemoteOptions options = {});

  Result<Environment> create(const CreateEnvironmentRequest& request,
                             const CreateOptions& options) override;
  Result<EnvironmentPage> list(const EnvironmentFilter& filter) override;
  Result<Environment> get(const std::string& id, bool include_ended) override;
  Result<void> destroy(const std::string& id) override;
  Result<ExecResult> exec(const std::string& id, const ExecRequest& request) override;
  Result<std::unique_ptr<AttachSession>> attach(const std::string& id,
                                                const AttachRequest& request) override;
  Result<void> stop_job(const std::string& id) override;
  Result<Environment> drain(const std::string& id) override;
  Result<void> rotate_token(const std::string& id) override;
  Result<void> events(const std::string& id, const EventQuery& query, const EventSink& sink,
                      std::stop_token stop) override;
  Result<LogRange> logs(const std::string& id, const LogQuery& query, const ByteSink& sink,
                        std::stop_token stop) override;

 private:
  // The reply when its status is 2xx, else the error it carries.
  Result<HttpReply> send(const HttpCall& call);
  // The same for calls that may be made twice: once more after a revival.
  Result<HttpReply> send_again(const HttpCall& call);

  enum class Next { again, give_up };
  // Waits and revives before a stream that broke is taken up again; give_up when
  // it was told to stop.  The error when there is no point in going on.
  Result<Next> prepare_again(Retry& retry, const std::optional<Error>& refusal,
                             const std::stop_token& stop);
  // What a log has beyond what was read: more may come; the rest that is there,
  // since its job has ended; nothing.
  enum class LogRest { more, last, none };
  LogRest rest_of_log(const std::string& id);
  // Whether a log stream that ended well, with `received` bytes, was the last one.
  // `rest` is what was known before, and is brought up to date.
  bool was_all(const std::string& id, const LogQuery& query, std::uint64_t received, LogRest& rest);

  std::unique_ptr<HttpClient> http_;
  Clock& clock_;
  RemoteOptions options_;
};

}  // namespace fuse
