#include <utility>

#include "base/text.h"
#include "orchestrator/environment_service.h"

namespace fuse {

namespace {

constexpr std::chrono::milliseconds longest_nap{1000};

// Requested when either of two tokens is.
class EitherStop {
 public:
  EitherStop(const std::stop_token& a, const std::stop_token& b)
      : on_a_(a, Request{source_}), on_b_(b, Request{source_}) {}
  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

 private:
  struct Request {
    std::stop_source source;
    void operator()() { source.request_stop(); }
  };
  std::stop_source source_;
  std::stop_callback<Request> on_a_;
  std::stop_callback<Request> on_b_;
};

bool ends_stream(const EnvironmentEvent& event) {
  return event.state && is_terminal(*event.state);
}

}  // namespace

Result<EnvironmentService::StreamStart> EnvironmentService::begin_stream(const std::string& id,
                                                                         const EventQuery& query) {
  auto row = find(id, true);
  if (!row) return row.error();
  return transact<StreamStart>(store_, [&](StoreTx& tx) -> Result<StreamStart> {
    const std::string& uid = row->environment.uid;
    const auto known = tx.events.sequence_of(uid, query.last_event_id);
    if (!known) return known.error();
    // One who was following may ask for the rest after the end.
    if (*known) return StreamStart{*row, **known};
    if (row->ended) {
      // Its id may be another's by now; who knows its uid gets all of it.
      if (uid == id) return StreamStart{*row, 0};
      return Error{ErrorCode::not_found, cat("vm not found: vm ", id)};
    }
    const auto state = tx.events.newest_state(uid);
    if (!state) return state.error();
    return StreamStart{*row, *state ? (*state)->sequence - 1 : 0};
  });
}

Result<void> EnvironmentService::events(const std::string& id, const EventQuery& query,
                                        const EventSink& sink, std::stop_token stop) {
  auto start = begin_stream(id, query);
  if (!start) return start.error();
  const EitherStop either(stop, stopping_.get_token());
  const std::string uid = start->row.environment.uid;
  Wakeups::Subscription wakeups(store_.wakeups(), uid);
  std::int64_t sequence = start->sequence;
  while (!either.token().stop_requested()) {
    const auto fresh = transact<std::vector<EventRow>>(
        store_, [&](StoreTx& tx) { return tx.events.after(uid, sequence, query.all_kinds); });
    if (!fresh) return fresh.error();
    for (const EventRow& row : *fresh) {
      sequence = row.sequence;
      if (!sink(row.event) || ends_stream(row.event)) return {};
    }
    if (!fresh->empty()) continue;
    const auto now = by_uid(uid);
    if (!now) return now.error();
    if (!*now || ((*now)->ended && start->row.ended)) return {};
    wakeups.wait(longest_nap, either.token());
  }
  return {};
}

// A log that is followed from before there is a job begins with the job.
Result<EnvironmentRow> EnvironmentService::await_job(EnvironmentRow row,
                                                     const std::stop_token& stop) {
  const std::string uid = row.environment.uid;
  Wakeups::Subscription wakeups(store_.wakeups(), uid);
  while (row.environment.state == EnvironmentState::provisioning && !stop.stop_requested()) {
    wakeups.wait(longest_nap, stop);
    auto now = by_uid(uid);
    if (!now) return now.error();
    if (!*now) return Error{ErrorCode::not_found, cat("vm not found: vm ", row.environment.id)};
    row = **std::move(now);
  }
  return row;
}

Result<LogRange> EnvironmentService::logs(const std::string& id, const LogQuery& query,
                                          const ByteSink& sink, std::stop_token stop) {
  auto row = find(id, true);
  if (!row) return row.error();
  if (!row->has_job) {
    return Error{ErrorCode::not_found, cat("vm ", row->environment.id, " has no job")};
  }
  const EitherStop either(stop, stopping_.get_token());
  if (query.follow) {
    row = await_job(*std::move(row), either.token());
    if (!row) return row.error();
  }
  const auto agent = agent_of(*row);
  if (!agent) return agent.error();
  auto range = agent->jobs.logs(row->environment.uid, query, sink, either.token());
  if (range) return range;
  // Nothing was written yet, or ever.
  if (range.error().code == ErrorCode::not_found) return LogRange{query.offset, query.offset};
  if (range.error().code == ErrorCode::unreachable) {
    return Error{ErrorCode::unavailable, range.error().message};
  }
  return range.error();
}

}  // namespace fuse
