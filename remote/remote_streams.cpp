#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json_reader.h"
#include "base/text.h"
#include "net/sse.h"
#include "net/url.h"
#include "orchestrator/api/json.h"
#include "remote/remote_environments.h"
#include "remote/retry.h"

namespace fuse {

namespace {

// The server sends a comment every 15 s.
constexpr std::chrono::milliseconds silent_events = std::chrono::seconds(45);

// Errors that another attempt may not meet: the server is away or goes down.
bool may_pass(const Error& error) {
  return error.code == ErrorCode::unreachable || error.code == ErrorCode::unavailable;
}

// An event stream put together from several connections.
class EventReader {
 public:
  EventReader(const EventSink& sink, std::string last_id)
      : sink_(sink), last_id_(std::move(last_id)) {}

  // For a new connection, which starts with a new event.
  void begin() { parser_ = {}; }
  // False when nothing more is wanted: see ended() and problem().
  bool take(std::string_view bytes) {
    const auto events = parser_.feed(bytes);
    if (!events) return fail(events.error());
    for (const SseEvent& event : *events) {
      if (!take(event)) return false;
    }
    return true;
  }
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] bool began() const { return began_; }
  [[nodiscard]] const std::optional<Error>& problem() const { return problem_; }
  [[nodiscard]] const std::string& last_id() const { return last_id_; }

 private:
  bool take(const SseEvent& sse) {
    const auto json = parse_json(sse.data);
    if (!json) return fail(json.error());
    auto event = parse_environment_event(*json);
    if (!event) return fail(event.error());
    if (!sse.id.empty()) last_id_ = sse.id;
    began_ = true;
    ended_ = !sink_(*event) || (event->state && is_terminal(*event->state));
    return !ended_;
  }
  bool fail(const Error& error) {
    problem_ = in_context("the event stream is not understood", error);
    problem_->code = ErrorCode::internal;
    return false;
  }

  const EventSink& sink_;
  std::string last_id_;
  SseParser parser_{};
  bool began_ = false;
  bool ended_ = false;
  std::optional<Error> problem_{};
};

}  // namespace

Result<void> RemoteEnvironments::events(const std::string& id, const EventQuery& query,
                                        const EventSink& sink, std::stop_token stop) {
  EventReader reader(sink, query.last_event_id);
  Retry retry(clock_, options_.patience);
  const std::string target = cat("/v1/environments/", percent_encode(id), "/events",
                                 query.all_kinds ? "?kinds=state,step,job" : "");
  for (;;) {
    reader.begin();
    HttpCall call{.method = "GET", .target = target, .idle_timeout = silent_events, .stop = stop};
    call.headers.set("Accept", "text/event-stream");
    if (!reader.last_id().empty()) call.headers.set("Last-Event-ID", reader.last_id());
    const auto reply = http_->stream(call, [&](std::string_view bytes) {
      retry.succeeded();
      return reader.take(bytes);
    });
    if (reader.problem()) return *reader.problem();
    if (reader.ended() || stop.stop_requested()) return {};
    std::optional<Error> refusal;
    if (!reply) {
      refusal = reply.error();
    } else if (reply->head.status >= 300) {
      refusal = parse_error(reply->head.status, reply->head.body);
    }
    if (refusal) {
      // Gone while we were away: there is nothing more to be told.
      if (refusal->code == ErrorCode::not_found && reader.began()) return {};
      if (!may_pass(*refusal)) return *refusal;
    }
    if (!retry.wait(stop)) {
      if (stop.stop_requested()) return {};
      return refusal.value_or(
          Error{ErrorCode::unreachable, cat("lost the events of ", id, " at ", http_->place())});
    }
    if (refusal && options_.revive) {
      if (const auto revived = options_.revive(); !revived) return revived.error();
    }
  }
}

namespace {

// Where the answer of a log route begins, when it does not begin where it was
// asked to: after `tail`.
constexpr std::string_view log_offset_header = "X-Fuse-Log-Offset";
// A job may be silent for hours; a connection that is silent is asked anew.
constexpr std::chrono::milliseconds silent_log = std::chrono::seconds(60);

bool is_success(int status) {
  return status >= 200 && status < 300;
}

std::string logs_target(const std::string& id, const LogQuery& query,
                        const std::optional<LogRange>& read) {
  Query parameters;
  if (read) {
    parameters.add("offset", cat(read->end));
  } else if (query.tail) {
    parameters.add("tail", cat(*query.tail));
  } else {
    parameters.add("offset", cat(query.offset));
  }
  if (query.follow) parameters.add("follow", "1");
  return cat("/v1/environments/", percent_encode(id), "/logs?", parameters.encode());
}

// What has been read once `received` more bytes came in an answer with this head.
LogRange advanced(const std::optional<LogRange>& read, const LogQuery& query, const HttpReply& head,
                  std::uint64_t received) {
  if (read) return {read->begin, read->end + received};
  std::uint64_t begin = query.tail ? 0 : query.offset;
  if (const auto header = head.headers.get(log_offset_header)) {
    const auto offset = parse_int(*header);
    if (offset && *offset >= 0) begin = static_cast<std::uint64_t>(*offset);
  }
  return {begin, begin + received};
}

// Whether a job that is in this state has no output beyond `end`.
bool is_all(const Environment& environment, std::uint64_t end) {
  if (!environment.job) return true;
  if (is_terminal(environment.state)) return true;
  const JobState state = environment.job->state;
  if (state == JobState::pending || state == JobState::running) return false;
  return environment.job->log_bytes <= end;
}

std::optional<Error> refusal_of(const Result<HttpStreamReply>& reply) {
  if (!reply) return reply.error();
  if (is_success(reply->head.status)) return std::nullopt;
  return parse_error(reply->head.status, reply->head.body);
}

}  // namespace

Result<LogRange> RemoteEnvironments::logs(const std::string& id, const LogQuery& query,
                                          const ByteSink& sink, std::stop_token stop) {
  Retry retry(clock_, options_.patience);
  std::optional<LogRange> read;
  bool ended = false;  // the job had ended before this connection was made
  for (;;) {
    std::uint64_t received = 0;
    bool refused = false;
    const HttpCall call{.method = "GET",
                        .target = logs_target(id, query, read),
                        .idle_timeout = silent_log,
                        .stop = stop};
    const auto reply = http_->stream(call, [&](std::string_view bytes) {
      received += bytes.size();
      refused = !sink(bytes);
      return !refused;
    });
    const auto refusal = refusal_of(reply);
    if (!refusal) {
      retry.succeeded();
      read = advanced(read, query, reply->head, received);
      if (refused || stop.stop_requested()) return *read;
      if (reply->end == HttpStreamReply::End::finished) {
        if (!query.follow || (ended && received == 0)) return *read;
        // A server that goes down ends its streams too: ask whether this was all.
        const auto environment = get(id, true);
        if (environment && is_all(*environment, read->end)) return *read;
        if (!environment && !may_pass(environment.error())) return *read;
        ended = environment && environment->job && environment->job->state != JobState::running;
      }
    } else if (!may_pass(*refusal)) {
      return *refusal;
    }
    if (!retry.wait(stop)) {
      if (stop.stop_requested()) return read.value_or(LogRange{});
      return *refusal;
    }
    if (refusal && options_.revive) {
      if (const auto revived = options_.revive(); !revived) return revived.error();
    }
  }
}

}  // namespace fuse
