#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

// The wire in C++: one struct for each schema of the orchestrator's API.  Field
// names are the wire's.  "" , 0 and empty containers mean absent unless an
// optional says otherwise.
namespace fuse {

struct ResourceSpec {
  std::int32_t cpus = 0;
  std::int32_t ram_mb = 0;
  std::int32_t storage_gb = 0;
  std::int32_t gpus = 0;
  std::string gpu_kind{};
  std::string gpu_profile{};
  std::string region{};
  std::string arch{};
  std::int64_t max_runtime_seconds = 0;
  std::int64_t idle_timeout_seconds = 0;
  std::string image{};
  std::string host_id{};
  std::map<std::string, std::string> labels{};
};

struct ExposeSpec {
  std::int32_t port = 0;
  std::string as{};
};

// A port of the guest that can be reached at `url`, an authority without a
// scheme.
struct Endpoint {
  std::string as{};
  std::string url{};
  std::int32_t port = 0;
  std::int32_t host_port = 0;
};

struct HealthcheckHttp {
  std::int32_t port = 0;
  std::string path{};
};

struct HealthcheckSpec {
  std::optional<HealthcheckHttp> http{};
  std::vector<std::string> exec{};
  std::int64_t interval_seconds = 0;
  std::int64_t timeout_seconds = 0;
  std::int32_t retries = 0;
  std::int64_t start_period_seconds = 0;
};

struct Health {
  std::string state{};  // starting, passing, failing
  std::string since{};
  std::int32_t failures = 0;
  std::string message{};
};

struct DesktopSpec {
  std::int32_t width = 0;
  std::int32_t height = 0;
};

// One build step: a self-contained sh script, run in `workdir` (absolute).
struct BuildStep {
  std::string name{};
  std::string script{};
  std::string workdir{};
};

// What a job does, apart from how it is started: our addition to a create,
// sent beside startup_script for orchestrators that do not know it.
struct Phases {
  std::vector<BuildStep> build{};
  std::string run{};      // the script; empty: nothing to run
  std::string workdir{};  // of run; absolute
};

enum class OnExit { keep, destroy };

struct CreateEnvironmentRequest {
  std::string task_id{};
  ResourceSpec spec{};
  std::string manifest_inline{};  // base64 of the manifest's JSON
  std::map<std::string, std::string> secrets{};
  std::map<std::string, std::string> files{};       // guest path -> base64
  std::map<std::string, std::string> file_modes{};  // ours: guest path -> "0755"
  std::string startup_script{};
  std::vector<ExposeSpec> expose{};
  std::optional<HealthcheckSpec> healthcheck{};
  std::optional<DesktopSpec> desktop{};
  std::string seed_snapshot_id{};
  std::int64_t startup_script_timeout_seconds = 0;
  std::string gateway_url{};
  std::string gateway_token{};
  std::optional<Phases> phases{};                // ours
  OnExit on_exit = OnExit::keep;                 // ours: what a job's end does to its environment
  std::optional<std::int64_t> settle_seconds{};  // ours: how long a create watches the job start
};

enum class EnvironmentState { provisioning, running, draining, destroying, destroyed, failed };

// Where a job is.  `pending` before its first step; `lost` when its VM went
// away without a result.
enum class JobState { pending, running, exited, lost };
enum class JobPhase { build, run, done };

// A job as the guest recorded it.
struct JobStatus {
  JobState state = JobState::pending;
  JobPhase phase = JobPhase::build;  // of a failed build: build
  std::int32_t step = 0;             // the build step it is at or ended in, from 1
  std::int32_t steps = 0;            // how many there are
  std::string step_name{};
  std::optional<std::int32_t> exit_code{};  // 128 + signal for a signal
  std::optional<std::int32_t> signal{};
  std::string reason{};  // exited, oom, timeout, stopped, lost
  std::string started_at{};
  std::string finished_at{};
  std::uint64_t log_bytes = 0;
};

struct Environment {
  std::string id{};   // "fuse-" + task_id
  std::string uid{};  // ours: this incarnation, a ULID
  EnvironmentState state = EnvironmentState::provisioning;
  std::string task_id{};
  std::string host_id{};
  std::string url{};
  ResourceSpec spec{};
  std::string created_at{};
  std::string updated_at{};
  std::string error{};
  std::vector<Endpoint> endpoints{};
  std::optional<Health> health{};
  std::optional<JobStatus> job{};  // ours
  // ours: what is bound to it, where its host lists what it has
  std::vector<std::string> gpu_device_uuids{};
  std::vector<std::string> mig_instance_uuids{};
};

// One entry of an environment's event stream.  Only kind "state" carries a
// top-level state: stock clients end their stream on one that is terminal.
struct EnvironmentEvent {
  std::string id{};  // 32 hex digits
  std::string event = "state";
  std::string vm_id{};
  std::optional<EnvironmentState> state{};
  std::string url{};
  std::string error{};
  std::string updated_at{};
  // kind "step": what the create or the build is at.
  std::string key{};  // schedule, create_vm, boot, deliver, build, job ...
  std::string message{};
  std::int32_t index = 0;  // build steps from 1
  std::int32_t total = 0;
  std::optional<std::int64_t> duration_ms{};
  std::optional<std::int32_t> exit_code{};
  // kind "job": a change of the job.
  std::optional<JobStatus> job{};
};

struct GpuDevice {
  std::int32_t index = 0;
  std::string uuid{};
  std::string model{};
  std::string pci_bus_id{};
  std::int64_t memory_mb = 0;
  std::string driver_version{};
  std::string compute_cap{};
  bool mig_capable = false;
  std::string mig_mode{};
  std::string iommu_group{};                // ours
  std::optional<std::int32_t> numa_node{};  // ours
};

struct MigInstance {
  std::string uuid{};
  std::string profile{};
  std::string kind{};
  std::string parent_gpu_uuid{};
};

struct HostCapacity {
  std::int32_t cpus = 0;
  std::int32_t ram_mb = 0;
  std::int32_t storage_gb = 0;
  std::int32_t vm_count = 0;
  std::int32_t gpus = 0;
  std::string gpu_kind{};
  std::string arch{};
  std::map<std::string, std::int32_t> mig_profiles{};
  std::vector<GpuDevice> gpu_devices{};
  std::vector<MigInstance> mig_instances{};
  std::vector<std::string> mig_instance_uuids{};  // of `allocated`: those in use
  std::vector<std::string> gpu_device_uuids{};    // ours, of `allocated`: those in use
  std::string gpu_summary{};  // ours: what a probe looked at and found, in words
};

enum class Backend { firecracker, qemu };
enum class HostState { active, cordoned, draining };

struct HostInfo {
  std::string id{};
  std::string url{};
  Backend backend = Backend::firecracker;
  std::string region{};
  std::string arch{};
  std::map<std::string, std::string> labels{};
  HostState state = HostState::active;
  bool reachable = true;
  HostCapacity capacity{};
  HostCapacity allocated{};
  std::string last_seen{};
  std::string created_at{};
  std::string updated_at{};
  std::vector<std::string> warnings{};  // of a registration
};

std::string_view to_string(EnvironmentState state);
std::string_view to_string(JobState state);
std::string_view to_string(JobPhase phase);
std::string_view to_string(OnExit policy);
std::string_view to_string(Backend backend);
std::string_view to_string(HostState state);
std::optional<EnvironmentState> environment_state_of(std::string_view text);
std::optional<JobState> job_state_of(std::string_view text);
std::optional<JobPhase> job_phase_of(std::string_view text);
std::optional<OnExit> on_exit_of(std::string_view text);
std::optional<Backend> backend_of(std::string_view text);
std::optional<HostState> host_state_of(std::string_view text);

// The name of a MIG profile: [1-7]g\.[0-9]+gb(\+me)? in any case.
[[nodiscard]] bool is_mig_profile(std::string_view text);
// destroyed or failed: nothing follows.
[[nodiscard]] bool is_terminal(EnvironmentState state);
// Whether its VM is there for its job: running, or draining.
[[nodiscard]] bool is_up(EnvironmentState state);
// Whether nothing about the job can change any more: it has exited or is lost.
[[nodiscard]] bool is_over(const JobStatus& job);

}  // namespace fuse
