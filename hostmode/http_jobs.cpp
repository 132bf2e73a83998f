#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "hostmode/http_routes.h"
#include "orchestrator/api/agent_json.h"
#include "orchestrator/api/json.h"

namespace fuse {

namespace {

HttpResponse accepted() {
  return agent_answer(202, {{"ok", true}});
}

HttpResponse start(const AgentCall& call) {
  // An action that is none must not start what it may have meant to end.
  if (call.request.query.get("action")) return text_response(404, "not found");
  const auto body = object_of(call.request);
  if (!body) return text_error_response(body.error());
  const auto job = parse_job_spec(*body);
  if (!job) return text_error_response(job.error());
  const auto started = call.site.agent.jobs.start_job(call.vm(), *job);
  return started ? accepted() : text_error_response(started.error());
}

HttpResponse stop(const AgentCall& call) {
  const auto stopped = call.site.agent.jobs.stop_job(call.vm());
  return stopped ? accepted() : text_error_response(stopped.error());
}

HttpResponse get(const AgentCall& call) {
  const auto job = call.site.agent.jobs.job(call.vm());
  if (!job) return text_error_response(job.error());
  return agent_answer(200, to_json(*job));
}

Result<std::optional<std::uint64_t>> count_in(const Query& query, std::string_view name) {
  const auto text = query.get(name);
  if (!text) return std::optional<std::uint64_t>();
  const auto number = parse_int(*text);
  if (number && *number >= 0) {
    return std::optional<std::uint64_t>(static_cast<std::uint64_t>(*number));
  }
  return Error{ErrorCode::invalid_argument,
               cat(name, ": \"", *text, "\" is not a whole number of 0 or more")};
}

HttpResponse logs(const AgentCall& call) {
  const auto offset = count_in(call.request.query, "offset");
  if (!offset) return text_error_response(offset.error());
  const auto tail = count_in(call.request.query, "tail");
  if (!tail) return text_error_response(tail.error());
  // A first look, which takes nothing, tells where it begins or why it cannot.
  LogQuery query{.offset = offset->value_or(0), .tail = *tail};
  const auto nothing = [](std::string_view /*bytes*/) { return false; };
  const auto look = call.site.agent.jobs.logs(call.vm(), query, nothing, call.request.stop);
  if (!look) return text_error_response(look.error());
  const std::string follow = call.request.query.get("follow").value_or("");
  query = {.offset = look->begin, .follow = follow == "1" || equal_ignoring_case(follow, "true")};
  HttpResponse response;
  response.headers = {{"Content-Type", "application/octet-stream"},
                      {"Cache-Control", "no-cache"},
                      {std::string(log_offset_header), std::to_string(look->begin)}};
  response.stream = [jobs = &call.site.agent.jobs, id = call.vm(), query](HttpStream& out) {
    (void)jobs->logs(
        id, query, [&out](std::string_view bytes) { return out.write(bytes); }, out.stop());
  };
  return response;
}

}  // namespace

std::vector<AgentRouteEntry> job_routes() {
  return {{"POST", "/v1/vm/{id}/job", "", start},
          {"POST", "/v1/vm/{id}/job", "stop", stop},
          {"GET", "/v1/vm/{id}/job", "", get},
          {"GET", "/v1/vm/{id}/logs", "", logs}};
}

}  // namespace fuse
