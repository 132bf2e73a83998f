// Local mode's background process with an agent that has no VMs, so that its
// life can be tested without any.  Takes the same arguments as fuse's own.
//
//   FUSE_TEST_IDLE_MS   ends after so long without use
//   FUSE_TEST_FAIL      the agent does not start, for this reason
//   FUSE_TEST_SLOW_MS   the agent takes so long to start

#include <cstdlib>
#include <iostream>
#include <thread>

#include "base/posix_host.h"
#include "base/text.h"
#include "cmd/context.h"
#include "cmd/local_daemon.h"

namespace fuse::cmd {

namespace {

Error nothing_here() {
  return {ErrorCode::not_found, "vm not found"};
}

class NoVms final : public LocalAgent, VmAgent, GuestAgent, JobAgent {
 public:
  [[nodiscard]] HostAgent agent() override { return {*this, *this, *this}; }
  [[nodiscard]] std::set<fs::path> images_in_use() const override { return {"/images/blobs/a"}; }
  void look_after_vms() override {}

  Result<HostCapacity> capacity() override {
    return HostCapacity{
        .cpus = 1, .ram_mb = 1024, .storage_gb = 10, .vm_count = 1, .arch = "amd64"};
  }
  Result<VmInfo> create_vm(const CreateVmRequest& /*request*/) override {
    return Error{ErrorCode::internal, "there are no VMs here"};
  }
  Result<VmInfo> get_vm(const std::string& /*vm_id*/) override { return nothing_here(); }
  Result<std::vector<VmInfo>> list_vms(const std::string& /*prefix*/) override {
    return std::vector<VmInfo>();
  }
  Result<void> destroy_vm(const std::string& /*vm_id*/) override { return nothing_here(); }
  Result<void> upload(const std::string& /*vm_id*/, const UploadFile& /*file*/) override {
    return nothing_here();
  }
  Result<ExecResult> exec(const std::string& /*vm_id*/, const ExecRequest& /*request*/) override {
    return nothing_here();
  }
  Result<std::unique_ptr<AttachSession>> attach(const std::string& /*vm_id*/,
                                                const AttachRequest& /*request*/) override {
    return nothing_here();
  }
  Result<std::vector<Endpoint>> start_agent(const std::string& /*vm_id*/,
                                            const StartAgentRequest& /*request*/) override {
    return nothing_here();
  }
  Result<void> start_job(const std::string& /*vm_id*/, const JobSpec& /*job*/) override {
    return nothing_here();
  }
  Result<JobStatus> job(const std::string& /*vm_id*/) override { return nothing_here(); }
  Result<void> stop_job(const std::string& /*vm_id*/) override { return nothing_here(); }
  Result<LogRange> logs(const std::string& /*vm_id*/, const LogQuery& /*query*/,
                        const ByteSink& /*sink*/, std::stop_token /*stop*/) override {
    return nothing_here();
  }
};

std::chrono::milliseconds milliseconds_of(const char* name, std::chrono::milliseconds otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::chrono::milliseconds(std::stoi(text));
}

int serve(const fs::path& state) {
  PosixHost host;
  SystemClock clock;
  StreamLog log(std::cerr, clock, LogFormat::text, LogLevel::info);
  const auto idle = milliseconds_of("FUSE_TEST_IDLE_MS", std::chrono::minutes(5));
  const auto served = serve_local(
      {.paths = {state}, .idle_limit = idle, .idle_check = std::min(idle, decltype(idle)(1000))},
      {.host = host,
       .clock = clock,
       .log = log,
       .watch_signals = watch_signals,
       .make_agent =
           [](const std::function<void()>& /*on_end*/) -> Result<std::unique_ptr<LocalAgent>> {
         std::this_thread::sleep_for(
             milliseconds_of("FUSE_TEST_SLOW_MS", std::chrono::milliseconds(0)));
         if (const char* why = std::getenv("FUSE_TEST_FAIL")) {
           return Error{ErrorCode::internal, why};
         }
         return std::unique_ptr<LocalAgent>(std::make_unique<NoVms>());
       }});
  if (served) return success;
  print_error(std::cerr, served.error(), false);
  return failed;
}

}  // namespace

}  // namespace fuse::cmd

int main(int argc, char** argv) {
  // local serve --state DIR
  return argc == 5 ? fuse::cmd::serve(argv[4]) : 2;
}
