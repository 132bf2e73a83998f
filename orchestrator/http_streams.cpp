#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/text.h"
#include "net/attach_frames.h"
#include "net/attach_session.h"
#include "net/sse.h"
#include "orchestrator/api/json.h"
#include "orchestrator/event_pump.h"
#include "orchestrator/http_routes.h"
#include "orchestrator/json_text.h"

namespace fuse {

namespace {

const std::string& vm_of(const HttpRequest& request) {
  return request.params.at("vmId");
}

// The kinds of events that are asked for; without `kinds` those that every
// client understands.
std::set<std::string> kinds_of(const HttpRequest& request) {
  const auto given = request.query.get("kinds");
  if (!given) return {"state", "step"};
  std::set<std::string> out;
  for (const std::string& kind : split(*given, ',')) out.insert(std::string(trim(kind)));
  return out;
}

void write_events(EventPump& pump, const std::set<std::string>& kinds,
                  std::chrono::milliseconds keepalive, HttpStream& out) {
  while (!out.stop().stop_requested()) {
    const EventPump::Taken taken = pump.take(keepalive, out.stop());
    if (taken.kind == EventPump::Taken::Kind::over) return;
    std::string text(sse_keepalive());
    if (taken.kind == EventPump::Taken::Kind::event) {
      if (kinds.count(taken.event.event) == 0) continue;
      text = encode_sse({.id = taken.event.id, .data = json_text(to_json(taken.event))});
    }
    if (!out.write(text)) return;
  }
}

HttpResponse events(const ApiBackends& backends, const HttpRequest& request) {
  const std::string last = request.headers.get("Last-Event-ID")
                               .value_or(request.query.get("last_event_id").value_or(""));
  const auto kinds = kinds_of(request);
  const bool live = backends.environments.get(vm_of(request), false).has_value();
  const auto pump = std::make_shared<EventPump>(
      backends.environments, vm_of(request),
      EventQuery{.last_event_id = last, .all_kinds = kinds.count("job") != 0});
  // An environment that has ended has all its events already, or is refused.
  if (!live) {
    if (const auto problem = pump->first_problem()) return error_response(*problem);
  }
  HttpResponse response;
  response.headers = {{"Content-Type", "text/event-stream"},
                      {"Cache-Control", "no-cache"},
                      {"X-Accel-Buffering", "no"}};
  response.stream = [pump, kinds, keepalive = backends.keepalive](HttpStream& out) {
    write_events(*pump, kinds, keepalive, out);
  };
  return response;
}

Result<std::optional<std::uint64_t>> count_in(const Query& query, std::string_view name) {
  const auto text = query.get(name);
  if (!text) return std::optional<std::uint64_t>();
  const auto number = parse_int(*text);
  if (!number || *number < 0) {
    return Error{ErrorCode::invalid_argument,
                 cat(name, ": \"", *text, "\" is not a whole number of 0 or more")};
  }
  return std::optional<std::uint64_t>(static_cast<std::uint64_t>(*number));
}

HttpResponse logs(const ApiBackends& backends, const HttpRequest& request) {
  const auto offset = count_in(request.query, "offset");
  if (!offset) return error_response(offset.error());
  const auto tail = count_in(request.query, "tail");
  if (!tail) return error_response(tail.error());
  // A first look, which takes nothing, tells where it begins or why it cannot.
  LogQuery query{.offset = offset->value_or(0), .tail = *tail};
  const auto nothing = [](std::string_view /*bytes*/) { return false; };
  const auto look = backends.environments.logs(vm_of(request), query, nothing, request.stop);
  if (!look) return error_response(look.error());
  query = {.offset = look->begin, .follow = flag_in(request.query, "follow")};
  HttpResponse response;
  response.headers = {{"Content-Type", "application/octet-stream"},
                      {"Cache-Control", "no-cache"},
                      {"X-Accel-Buffering", "no"},
                      {"X-Fuse-Log-Offset", std::to_string(look->begin)}};
  response.stream = [&api = backends.environments, id = vm_of(request), query](HttpStream& out) {
    (void)api.logs(
        id, query, [&out](std::string_view bytes) { return out.write(bytes); }, out.stop());
  };
  return response;
}

HttpResponse attach(const ApiBackends& backends, const HttpRequest& request) {
  if (!request.headers.has_token("Upgrade", attach_protocol)) {
    return error_response({ErrorCode::invalid_argument, "attach requires Upgrade: fuse-attach/1"});
  }
  const AttachRequest wanted = parse_attach_query(request.query);
  // Only who says so gets no terminal: others have forgotten to ask for one.
  if (!wanted.tty && !request.query.get("tty")) {
    return error_response({ErrorCode::invalid_argument,
                           "attach requires tty=1; use ?action=exec for non-interactive commands"});
  }
  auto session = backends.environments.attach(vm_of(request), wanted);
  if (!session) return error_response(session.error());
  return attach_response(*std::move(session));
}

}  // namespace

std::vector<ApiRouteEntry> stream_routes() {
  return {{"GET", "/v1/environments/{vmId}/events", "", Access::user, events},
          {"GET", "/v1/environments/{vmId}/logs", "", Access::user, logs},
          {"GET", "/v1/environments/{vmId}/attach", "", Access::master, attach, "attach"}};
}

}  // namespace fuse
