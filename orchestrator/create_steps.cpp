#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/text.h"
#include "base/units.h"
#include "orchestrator/deliveries.h"
#include "orchestrator/guest_credentials.h"
#include "orchestrator/steps.h"

namespace fuse {

namespace {

constexpr std::size_t uploads_at_a_time = 8;
constexpr std::int64_t usual_startup_seconds = 30;
constexpr std::size_t most_quoted_output = 2000;

StepOutcome next(std::string_view step) {
  return {.kind = StepOutcome::Kind::next, .step = step};
}

StepOutcome failure(Error error) {
  const auto kind = may_pass(error) ? StepOutcome::Kind::retry : StepOutcome::Kind::failed;
  return {.kind = kind, .error = std::move(error)};
}

StepOutcome hopeless(Error error) {
  return {.kind = StepOutcome::Kind::failed, .error = std::move(error)};
}

Error vm_ended(const std::string& why) {
  return {ErrorCode::unavailable,
          why.empty() ? std::string("the vm is gone") : cat("the vm ended: ", why)};
}

// Something that was asked of the VM went wrong.  Trying again helps only while
// there is a VM.
StepOutcome failure_in_vm(const StepInput& input, Error error) {
  if (!may_pass(error)) return hopeless(std::move(error));
  const auto vm = input.agent.vms.get_vm(input.row.environment.uid);
  if (!vm && vm.error().code == ErrorCode::not_found) return hopeless(vm_ended(""));
  if (vm && !vm->alive) return hopeless(vm_ended(vm->ended));
  return failure(std::move(error));
}

// A create whose request is gone was delivered, so only a defect leads here.
Error without_request() {
  return {ErrorCode::internal, "the request is no longer in the database"};
}

// The codes of an agent, as a create answers them.
Error of_create(Error error) {
  // Only the image of the request can be unknown to an agent.
  if (error.code == ErrorCode::not_found) error.code = ErrorCode::invalid_argument;
  // It holds less than we believed: somebody else uses it too.
  if (error.code == ErrorCode::conflict) error.code = ErrorCode::unavailable;
  return error;
}

StepOutcome create_vm(const StepInput& input) {
  const Environment& environment = input.row.environment;
  const ResourceSpec& spec = environment.spec;
  CreateVmRequest wanted{.name = environment.id,
                         .uid = environment.uid,
                         .cpus = spec.cpus,
                         .memory_mb = spec.ram_mb,
                         .storage_gb = spec.storage_gb,
                         .region = spec.region,
                         .image = spec.image,
                         .gpus = spec.gpus,
                         .gpu_kind = spec.gpu_kind,
                         .gpu_profile = spec.gpu_profile,
                         .idempotency_key = input.operation.id,
                         .cluster = input.cluster};
  for (const BindingRow& binding : input.bindings) {
    auto& uuids =
        binding.kind == DeviceKind::mig ? wanted.mig_instance_uuids : wanted.gpu_device_uuids;
    uuids.push_back(binding.device_uuid);
  }
  auto vm = input.agent.vms.create_vm(wanted);
  if (!vm) return may_pass(vm.error()) ? failure(vm.error()) : hopeless(of_create(vm.error()));
  if (!vm->alive) return hopeless(vm_ended(vm->ended));
  StepOutcome out = next(steps::deliver);
  out.change = [vm = *vm](EnvironmentRow& row) {
    row.vm_id = vm.vm_id;
    row.environment.url = vm.url.empty() ? cat("qemu://", vm.vm_id) : vm.url;
  };
  return out;
}

// At most eight at a time; the first error ends it.
Result<void> upload_all(GuestAgent& guests, const std::string& vm,
                        const std::vector<UploadFile>& files) {
  std::atomic<std::size_t> position{0};
  std::mutex mutex;
  std::optional<Error> first;
  const auto work = [&] {
    for (std::size_t at = position++; at < files.size(); at = position++) {
      auto done = guests.upload(vm, files[at]);
      if (done) continue;
      const std::scoped_lock lock(mutex);
      if (!first) first = in_context(cat("upload ", files[at].path), done.error());
      position = files.size();
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < std::min(uploads_at_a_time, files.size()); ++i) {
      helpers.emplace_back(work);
    }
    work();
  }
  if (first) return *std::move(first);
  return {};
}

StepOutcome deliver(const StepInput& input) {
  if (!input.request) return hopeless(without_request());
  const auto manifest = parse_manifest(input.request->manifest_inline);
  if (!manifest) return hopeless(manifest.error());
  std::vector<UploadFile> credentials;
  if (input.guest_credentials) {
    auto made = make_guest_credentials(input.row.environment.id, input.now);
    if (!made) return hopeless(made.error());
    credentials = *std::move(made);
  }
  const auto files = guest_files(*input.request, *manifest, credentials);
  if (!files) return hopeless(files.error());
  if (auto done = upload_all(input.agent.guests, input.row.environment.uid, *files); !done) {
    return failure_in_vm(input, done.error());
  }
  const bool has_script = !input.request->phases && !input.request->startup_script.empty();
  return next(has_script ? steps::script : steps::start_agent);
}

// What was printed last, for the one who has to put the script right.
std::string quoted_output(const ExecResult& result) {
  std::string text(trim(result.err.empty() ? result.out : result.err));
  if (text.size() > most_quoted_output) text.erase(0, text.size() - most_quoted_output);
  return text.empty() ? std::string() : cat(": ", valid_utf8(text));
}

StepOutcome run_script(const StepInput& input) {
  if (!input.request) return hopeless(without_request());
  // A script that was begun must not run twice, and nobody knows how far it got.
  if (input.resumed) {
    return hopeless(
        {ErrorCode::internal, "startup script: the orchestrator was restarted while it ran"});
  }
  const std::int64_t given = input.request->startup_script_timeout_seconds;
  const std::chrono::seconds bound(given > 0 ? given : usual_startup_seconds);
  const auto result = input.agent.guests.exec(
      input.row.environment.uid, {.cmd = {"sh", "-lc", input.request->startup_script},
                                  .timeout_ms = std::chrono::milliseconds(bound).count()});
  if (!result) return hopeless(in_context("startup script", result.error()));
  constexpr std::int32_t timed_out = 124;
  if (result->exit_code == timed_out && result->err.rfind("timeout:", 0) == 0) {
    return hopeless({ErrorCode::invalid_argument,
                     cat("startup script did not complete in time after ",
                         to_string(std::chrono::nanoseconds(bound)), ": ", trim(result->err))});
  }
  if (result->exit_code != 0) {
    return hopeless({ErrorCode::internal,
                     cat("startup script: exec exit ", result->exit_code, quoted_output(*result))});
  }
  return next(steps::start_agent);
}

StepOutcome start_agent(const StepInput& input) {
  if (!input.request) return hopeless(without_request());
  const auto endpoints =
      input.agent.guests.start_agent(input.row.environment.uid, {.expose = input.request->expose});
  if (!endpoints) return failure_in_vm(input, endpoints.error());
  StepOutcome out =
      input.row.has_job ? next(steps::start_job) : StepOutcome{.kind = StepOutcome::Kind::running};
  out.change = [endpoints = *endpoints](EnvironmentRow& row) {
    row.environment.endpoints = endpoints;
  };
  return out;
}

StepOutcome start_job(const StepInput& input) {
  if (!input.request) return hopeless(without_request());
  const auto manifest = parse_manifest(input.request->manifest_inline);
  if (!manifest) return hopeless(manifest.error());
  std::chrono::seconds left(input.row.environment.spec.max_runtime_seconds);
  if (left.count() > 0) {
    left -= std::chrono::duration_cast<std::chrono::seconds>(input.now - input.row.created);
    left = std::max(left, std::chrono::seconds(1));
  }
  const auto started = input.agent.jobs.start_job(input.row.environment.uid,
                                                  job_of(*input.request, *manifest, left));
  // It has one already: ours, from before we were interrupted.
  if (!started && started.error().code != ErrorCode::conflict) {
    return failure_in_vm(input, started.error());
  }
  StepOutcome out{.kind = StepOutcome::Kind::running};
  out.change = [](EnvironmentRow& row) {
    row.environment.job = JobStatus{.steps = static_cast<std::int32_t>(row.step_names.size())};
  };
  return out;
}

}  // namespace

bool may_pass(const Error& error) {
  return error.code == ErrorCode::unreachable || error.code == ErrorCode::unavailable;
}

StepTitle title_of(std::string_view step, const EnvironmentRow& row) {
  if (step == steps::create_vm) {
    return {"create_vm", cat("start the vm on host ", row.environment.host_id)};
  }
  if (step == steps::deliver) return {"deliver", "deliver files and settings"};
  if (step == steps::script_running) return {"script", "run the startup script"};
  if (step == steps::start_agent) return {"start_agent", "start services and open ports"};
  if (step == steps::start_job) return {"start_job", "start the job"};
  return {};
}

StepOutcome run_create_step(const StepInput& input) {
  const std::string& step = input.operation.step;
  if (step == steps::create_vm) return create_vm(input);
  if (step == steps::deliver) return deliver(input);
  if (step == steps::script) return next(steps::script_running);
  if (step == steps::script_running) return run_script(input);
  if (step == steps::start_agent) return start_agent(input);
  if (step == steps::start_job) return start_job(input);
  return hopeless({ErrorCode::internal, cat("unknown step \"", step, '"')});
}

}  // namespace fuse
