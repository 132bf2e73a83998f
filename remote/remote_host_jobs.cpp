#include <utility>

#include "base/text.h"
#include "orchestrator/api/json.h"
#include "remote/agent_answer_detail.h"
#include "remote/log_reader.h"
#include "remote/remote_host_agent.h"
#include "remote/retry.h"

namespace fuse {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds job_timeout = seconds(60);
constexpr milliseconds log_head_timeout = seconds(30);

bool may_pass(const Error& error) {
  return error.code == ErrorCode::unreachable || error.code == ErrorCode::unavailable;
}

// How an attempt at the log was refused, or that it was not answered.
std::optional<Error> refusal_of(const AgentWire& wire, const HttpCall& call,
                                const Result<HttpStreamReply>& reply) {
  if (!reply) return reply.error();
  const HttpReply& head = reply->head;
  if (head.status >= 200 && head.status < 300) return std::nullopt;
  return wire.refusal(call, head.status, head.body);
}

}  // namespace

Result<void> RemoteJobs::start_job(const std::string& vm_id, const JobSpec& job) {
  const auto agent = wire_.health();
  if (!agent) return agent.error();
  if (!agent->has(agent_feature::jobs)) return exec_jobs_.start_job(vm_id, job);
  const auto path = wire_.vm_path(vm_id);
  if (!path) return path.error();
  HttpCall call = agent_call("POST", cat(*path, "/job"), to_json(job));
  call.timeout = job_timeout;
  if (const auto reply = wire_.send(call); !reply) return reply.error();
  return {};
}

Result<JobStatus> RemoteJobs::job(const std::string& vm_id) {
  const auto agent = wire_.health();
  if (!agent) return agent.error();
  if (!agent->has(agent_feature::jobs)) return exec_jobs_.job(vm_id);
  const auto path = wire_.vm_path(vm_id);
  if (!path) return path.error();
  const auto reply =
      wire_.send({.method = "GET", .target = cat(*path, "/job"), .timeout = job_timeout});
  if (!reply) return reply.error();
  return parsed_answer(wire_, *reply, &parse_job_status);
}

Result<void> RemoteJobs::stop_job(const std::string& vm_id) {
  const auto agent = wire_.health();
  if (!agent) return agent.error();
  if (!agent->has(agent_feature::jobs)) return exec_jobs_.stop_job(vm_id);
  const auto path = wire_.vm_path(vm_id);
  if (!path) return path.error();
  const auto reply = wire_.send(
      {.method = "POST", .target = cat(*path, "/job?action=stop"), .timeout = job_timeout});
  if (!reply) return reply.error();
  return {};
}

void RemoteJobs::keep_result(const std::string& vm_id) {
  const auto agent = wire_.health();
  if (agent && !agent->has(agent_feature::jobs)) exec_jobs_.keep_result(vm_id);
}

RemoteJobs::LogPart RemoteJobs::read_part(const std::string& vm_id, LogReader& reader, bool& over,
                                          const std::stop_token& stop) {
  const HttpCall call{.method = "GET",
                      .target = reader.target(),
                      .timeout = log_head_timeout,
                      .idle_timeout = silent_log,
                      .stop = stop};
  const auto reply =
      wire_.http().stream(call, [&reader](std::string_view bytes) { return reader.take(bytes); });
  if (auto refusal = refusal_of(wire_, call, reply)) return {.refusal = std::move(refusal)};
  const std::uint64_t received = reader.settle(reply->head);
  if (reader.refused()) return {.last = true};
  const bool finished = reply->end == HttpStreamReply::End::finished;
  if (finished && (!reader.follows() || (over && received == 0))) return {.last = true};
  // An agent that goes down ends its streams too: only a job that is over has no
  // more to say.
  const auto status = job(vm_id);
  over = status && is_over(*status);
  return {.last = !status && status.error().code == ErrorCode::not_found};
}

Result<LogRange> RemoteJobs::logs(const std::string& vm_id, const LogQuery& query,
                                  const ByteSink& sink, std::stop_token stop) {
  const auto agent = wire_.health();
  if (!agent) return agent.error();
  if (!agent->has(agent_feature::jobs)) return exec_jobs_.logs(vm_id, query, sink, stop);
  const auto path = wire_.vm_path(vm_id);
  if (!path) return path.error();
  LogReader reader(cat(*path, "/logs"), query, sink);
  Retry retry(clock_, options_.log_patience);
  bool over = false;
  for (;;) {
    const LogPart part = read_part(vm_id, reader, over, stop);
    if (part.last || stop.stop_requested()) return reader.range();
    if (part.refusal && !may_pass(*part.refusal)) return *part.refusal;
    if (!part.refusal) retry.succeeded();
    if (retry.wait(stop)) continue;
    if (stop.stop_requested()) return reader.range();
    return part.refusal.value_or(
        Error{ErrorCode::unreachable, cat(wire_.place(), " does not answer any more")});
  }
}

}  // namespace fuse
