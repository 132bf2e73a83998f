#include "orchestrator/api/types.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace fuse {

namespace {

template <class E>
struct Name {
  E value;
  std::string_view text;
};

constexpr std::array<Name<EnvironmentState>, 6> environment_states = {{
    {EnvironmentState::provisioning, "provisioning"},
    {EnvironmentState::running, "running"},
    {EnvironmentState::draining, "draining"},
    {EnvironmentState::destroying, "destroying"},
    {EnvironmentState::destroyed, "destroyed"},
    {EnvironmentState::failed, "failed"},
}};
constexpr std::array<Name<JobState>, 4> job_states = {{
    {JobState::pending, "pending"},
    {JobState::running, "running"},
    {JobState::exited, "exited"},
    {JobState::lost, "lost"},
}};
constexpr std::array<Name<JobPhase>, 3> job_phases = {{
    {JobPhase::build, "build"},
    {JobPhase::run, "run"},
    {JobPhase::done, "done"},
}};
constexpr std::array<Name<OnExit>, 2> policies = {{
    {OnExit::keep, "keep"},
    {OnExit::destroy, "destroy"},
}};
constexpr std::array<Name<Backend>, 2> backends = {{
    {Backend::firecracker, "firecracker"},
    {Backend::qemu, "qemu"},
}};
constexpr std::array<Name<HostState>, 3> host_states = {{
    {HostState::active, "active"},
    {HostState::cordoned, "cordoned"},
    {HostState::draining, "draining"},
}};

template <class E, std::size_t N>
std::string_view name_in(const std::array<Name<E>, N>& names, E value) {
  for (const auto& name : names) {
    if (name.value == value) return name.text;
  }
  return names[0].text;
}

template <class E, std::size_t N>
std::optional<E> value_in(const std::array<Name<E>, N>& names, std::string_view text) {
  for (const auto& name : names) {
    if (name.text == text) return name.value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(EnvironmentState state) {
  return name_in(environment_states, state);
}
std::string_view to_string(JobState state) {
  return name_in(job_states, state);
}
std::string_view to_string(JobPhase phase) {
  return name_in(job_phases, phase);
}
std::string_view to_string(OnExit policy) {
  return name_in(policies, policy);
}
std::string_view to_string(Backend backend) {
  return name_in(backends, backend);
}
std::string_view to_string(HostState state) {
  return name_in(host_states, state);
}

std::optional<EnvironmentState> environment_state_of(std::string_view text) {
  return value_in(environment_states, text);
}
std::optional<JobState> job_state_of(std::string_view text) {
  return value_in(job_states, text);
}
std::optional<JobPhase> job_phase_of(std::string_view text) {
  return value_in(job_phases, text);
}
std::optional<OnExit> on_exit_of(std::string_view text) {
  return value_in(policies, text);
}
std::optional<Backend> backend_of(std::string_view text) {
  return value_in(backends, text);
}
std::optional<HostState> host_state_of(std::string_view text) {
  return value_in(host_states, text);
}

bool is_up(EnvironmentState state) {
  return state == EnvironmentState::running || state == EnvironmentState::draining;
}

bool is_terminal(EnvironmentState state) {
  return state == EnvironmentState::destroyed || state == EnvironmentState::failed;
}

bool is_over(const JobStatus& job) {
  return job.state == JobState::exited || job.state == JobState::lost;
}

bool is_mig_profile(std::string_view text) {
  const std::string name = lowercase(text);
  std::string_view rest = name;
  if (rest.size() < 3 || rest[0] < '1' || rest[0] > '7' || rest.substr(1, 2) != "g.") return false;
  rest.remove_prefix(3);
  if (rest.ends_with("+me")) rest.remove_suffix(3);
  if (!rest.ends_with("gb")) return false;
  rest.remove_suffix(2);
  return !rest.empty() && std::ranges::all_of(rest, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace fuse
