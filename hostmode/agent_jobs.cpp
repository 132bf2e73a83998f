#include <utility>

#include "base/text.h"
#include "hostmode/agent.h"
#include "hostmode/job_book.h"

namespace fuse {

namespace {

Error no_job(const std::string& vm_id) {
  return {ErrorCode::not_found, cat("vm ", vm_id, " has had no job")};
}

}  // namespace

Result<void> Agent::start_job(const std::string& vm_id, const JobSpec& job) {
  const auto found = session(vm_id);
  if (!found) return found.error();
  auto started = (*found)->start_job(job);
  if (!started) return in_context(cat("start the job of vm ", vm_id), started.error());
  return started;
}

Result<JobStatus> Agent::job(const std::string& vm_id) {
  Result<std::optional<JobStatus>> status = std::optional<JobStatus>();
  if (const auto vm = keeper_.table().find(vm_id); vm != nullptr) {
    (void)vm->await_created();
    const auto session = vm->session();
    status = session != nullptr
                 ? Result<std::optional<JobStatus>>(session->job())
                 : read_job(keeper_.world().host, keeper_.paths().vm(vm->record().uid));
    // Who is told that it is lost asks the VM why.
    if (status && *status && (*status)->state == JobState::lost) keeper_.settle(*vm);
  } else if (const auto held = keeper_.set_aside(vm_id)) {
    if (held->newer) return keeper_.find(vm_id).error();
    status = read_job(keeper_.world().host, keeper_.paths().vm(held->uid));
    if (status && *status && !is_over(**status)) status = std::optional(lost_job(**status));
  } else {
    const auto receipt = keeper_.receipts().find(vm_id);
    if (!receipt) return Error{ErrorCode::not_found, "vm not found"};
    status = keeper_.receipts().job(*receipt);
  }
  if (!status) return status.error();
  if (!*status) return no_job(vm_id);
  return **status;
}

Result<void> Agent::stop_job(const std::string& vm_id) {
  const auto vm = keeper_.find(vm_id);
  if (!vm) return vm.error();
  const auto session = (*vm)->session();
  if (session == nullptr) return {};  // the VM's end was the job's
  return session->stop_job();
}

Result<LogRange> Agent::logs(const std::string& vm_id, const LogQuery& query, const ByteSink& sink,
                             std::stop_token stop) {
  Result<std::shared_ptr<JobLog>> log = Error{ErrorCode::not_found, "vm not found"};
  if (const auto vm = keeper_.table().find(vm_id); vm != nullptr) {
    (void)vm->await_created();
    const auto session = vm->session();
    log = session != nullptr
              ? Result<std::shared_ptr<JobLog>>(session->log())
              : JobLog::open_finished(keeper_.paths().vm(vm->record().uid, vm_file::job_log));
  } else if (const auto held = keeper_.set_aside(vm_id)) {
    log = JobLog::open_finished(keeper_.paths().vm(held->uid, vm_file::job_log));
  } else if (const auto receipt = keeper_.receipts().find(vm_id)) {
    log = keeper_.receipts().log(*receipt);
  }
  if (!log) return log.error();
  return (*log)->read(query, sink, std::move(stop));
}

}  // namespace fuse
