#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "orchestrator/api/environment_api.h"
#include "orchestrator/api/types.h"

// What the tables of the database hold.
namespace fuse {

struct EnvironmentRow {
  Environment environment{};  // as it is answered
  std::int64_t revision = 0;  // grows with each change; an update of an old one is refused
  WallTime created{};
  WallTime active{};                // when somebody last did something in it; may lag
  std::optional<WallTime> ended{};  // absent while it is live
  std::string vm_id{};              // the agent's name for it, once there is a VM
  // What it becomes once its VM is gone: destroyed, or failed with its error.
  EnvironmentState final_state = EnvironmentState::destroyed;
  ErrorCode error_code = ErrorCode::internal;  // of environment.error
  OnExit on_exit = OnExit::keep;
  std::int64_t settle_seconds = 0;
  bool has_job = false;
  bool probes_health = false;
  std::vector<std::string> step_names{};  // of the job's build
};

enum class OperationKind {
  create,   // bring it up
  watch,    // follow its job
  destroy,  // take it down, however often the agent must be asked
};

// Work in progress on an environment, at most one each.
struct OperationRow {
  std::string id{};  // a ULID; the idempotency key towards the agent
  std::string environment_uid{};
  OperationKind kind = OperationKind::create;
  std::string step{};
  WallTime step_started{};
  std::string lease_owner{};  // who works on it, until then
  WallTime lease_until{};
  std::int64_t attempts = 0;  // of this step that failed
  WallTime next_try{};
  WallTime deadline{};  // of a create: what is not up by then has failed
};

struct EventRow {
  std::int64_t sequence = 0;  // within its environment, from 1
  EnvironmentEvent event{};
};

struct HostRow {
  HostInfo info{};           // `allocated` is not kept: it follows from the rest
  std::int64_t version = 0;  // grows with each change of what is free on it
  WallTime seen{};
  std::string token{};
  HostCapacity declared{};  // by an operator; the rest is as its agent says
};

enum class DeviceKind { gpu, mig };

// A device that an environment holds.
struct BindingRow {
  std::string environment_uid{};
  std::string host_id{};
  std::string device_uuid{};
  DeviceKind kind = DeviceKind::gpu;
};

// What is set aside on a host for an environment.
struct ReservationRow {
  std::string environment_uid{};
  std::string host_id{};
  ResourceSpec spec{};  // its amounts, gpus and gpu_profile
};

// What is set aside for all those of one profile.
struct ReservationSum {
  std::string gpu_profile{};
  std::int32_t environments = 0;
  std::int32_t cpus = 0;
  std::int32_t ram_mb = 0;
  std::int32_t storage_gb = 0;
  std::int32_t gpus = 0;
};

// A key that a caller may use; of the key itself only its SHA-256 is kept.
struct ApiKeyRow {
  std::string id{};
  std::string hash{};
  std::string label{};
  WallTime created{};
  std::optional<WallTime> last_used{};
  std::optional<WallTime> revoked{};
};

// Somebody who signed in with a browser: good as long as what they signed in with.
struct SessionRow {
  std::string hash{};        // SHA-256 of the cookie
  std::string key_id{};      // of an API key; empty: the master token
  std::string token_mark{};  // tells whether the master token is still the same
  WallTime expires{};
};

std::string_view to_string(OperationKind kind);
std::optional<OperationKind> operation_kind_of(std::string_view text);

}  // namespace fuse
