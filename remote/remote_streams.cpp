#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json_reader.h"
#include "base/text.h"
#include "base/units.h"
#include "net/sse.h"
#include "net/url.h"
#include "orchestrator/api/json.h"
#include "remote/log_reader.h"
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

// The error that an attempt at a stream came to; nothing when it was accepted.
std::optional<Error> refusal_of(const Result<HttpStreamReply>& reply) {
  if (!reply) return reply.error();
  if (reply->head.status >= 200 && reply->head.status < 300) return std::nullopt;
  return parse_error(reply->head.status, reply->head.body);
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

// Tells that a log broke off for a while and where it goes on.
class LogBreak {
 public:
  LogBreak(const RemoteOptions& options, const Clock& clock) : options_(options), clock_(clock) {}

  void begin() {
    if (!since_) since_ = clock_.steady();
  }
  // Bytes come again, the first of them at `offset`.
  void end(std::uint64_t offset) {
    if (!since_) return;
    const auto took = clock_.steady() - *std::exchange(since_, std::nullopt);
    if (took < options_.short_break) return;
    say(cat("the connection was lost for ", human_duration(took), "; the output goes on at byte ",
            offset));
  }
  void missed(const LogRange& hole) const {
    if (hole.end == hole.begin) return;
    say(cat("bytes ", hole.begin, " to ", hole.end,
            " of the output were missed: they are not kept any more"));
  }

 private:
  void say(const std::string& line) const {
    if (options_.log_news) options_.log_news(line);
  }

  const RemoteOptions& options_;
  const Clock& clock_;
  std::optional<SteadyTime> since_{};
};

}  // namespace

Result<RemoteEnvironments::Next> RemoteEnvironments::prepare_again(
    Retry& retry, const std::optional<Error>& refusal, const std::stop_token& stop) {
  if (refusal && !may_pass(*refusal)) return *refusal;
  if (!retry.wait(stop)) {
    if (stop.stop_requested()) return Next::give_up;
    return refusal.value_or(
        Error{ErrorCode::unreachable, cat(http_->place(), " does not answer any more")});
  }
  if (refusal && options_.revive) {
    if (const auto revived = options_.revive(); !revived) return revived.error();
  }
  return Next::again;
}

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
    const auto refusal = refusal_of(reply);
    // Gone while we were away: there is nothing more to be told.
    if (refusal && refusal->code == ErrorCode::not_found && reader.began()) return {};
    const auto next = prepare_again(retry, refusal, stop);
    if (!next) return next.error();
    if (*next == Next::give_up) return {};
  }
}

RemoteEnvironments::LogRest RemoteEnvironments::rest_of_log(const std::string& id) {
  const auto environment = get(id, true);
  if (!environment) return may_pass(environment.error()) ? LogRest::more : LogRest::none;
  if (!environment->job) return LogRest::none;
  const bool ended = is_terminal(environment->state) || is_over(*environment->job);
  return ended ? LogRest::last : LogRest::more;
}

bool RemoteEnvironments::was_all(const std::string& id, const LogQuery& query,
                                 std::uint64_t received, LogRest& rest) {
  if (!query.follow || (rest == LogRest::last && received == 0)) return true;
  // A server that goes down ends its streams too: ask, and once the job has
  // ended, read until nothing more comes.
  rest = rest_of_log(id);
  return rest == LogRest::none;
}

Result<LogRange> RemoteEnvironments::logs(const std::string& id, const LogQuery& query,
                                          const ByteSink& sink, std::stop_token stop) {
  Retry retry(clock_, options_.patience);
  LogReader reader(cat("/v1/environments/", percent_encode(id), "/logs"), query, sink);
  LogRest rest = LogRest::more;
  LogBreak broken(options_, clock_);
  for (;;) {
    const HttpCall call{
        .method = "GET", .target = reader.target(), .idle_timeout = silent_log, .stop = stop};
    const auto reply = http_->stream(call, [&](std::string_view bytes) {
      broken.end(reader.next());
      return reader.take(bytes);
    });
    const auto refusal = refusal_of(reply);
    if (!refusal) {
      retry.succeeded();
      const std::uint64_t received = reader.settle(reply->head);
      broken.missed(reader.hole());
      if (reader.refused() || stop.stop_requested()) return reader.range();
      const bool finished = reply->end == HttpStreamReply::End::finished;
      if (finished && was_all(id, query, received, rest)) return reader.range();
    }
    broken.begin();
    const auto next = prepare_again(retry, refusal, stop);
    if (!next) return next.error();
    if (*next == Next::give_up) return reader.range();
  }
}

}  // namespace fuse
