#include "orchestrator/registration.h"

#include "base/text.h"
#include "tests/orchestrator/engine.h"

namespace fuse {
namespace {

RegisterHostRequest gpu_host() {
  return {.id = "gpu-1",
          .url = "http://gpu-host:8091",
          .token = "t",
          .backend = Backend::qemu,
          .capacity = {.vm_count = 4}};
}

HostCapacity probed() {
  return {.cpus = 16,
          .ram_mb = 65536,
          .storage_gb = 500,
          .gpus = 4,
          .gpu_kind = "a100",
          .arch = "amd64"};
}

std::string complaint(const RegisterHostRequest& request) {
  const auto checked = checked_registration(request);
  return checked ? "" : checked.error().message;
}

TEST_CASE("a registration's address is http or https and nothing else") {
  const auto of = [](const std::string& url) {
    auto request = gpu_host();
    request.url = url;
    return complaint(request);
  };
  CHECK(of("") == "id and url are required");
  CHECK(of("gpu-host:8091") == "host url must include a scheme (http:// or https://)");
  CHECK(of("ftp://gpu-host") == "host url scheme \"ftp\" is not supported; use http or https");
  CHECK(of("http://me:secret@gpu-host").find("host url must not embed credentials; ") == 0);
  CHECK(of("http://gpu-host/?a=1") == "host url must not include a query string");
  CHECK(of("http://gpu-host/#a") == "host url must not include a fragment");
  CHECK_FALSE(of("http://").empty());
  auto request = gpu_host();
  request.url = "https://gpu-host/agents/1/";
  CHECK(must(checked_registration(request)).url == "https://gpu-host/agents/1");
}

TEST_CASE("gpus and slices belong to hosts that run qemu") {
  auto request = gpu_host();
  request.backend = Backend::firecracker;
  request.capacity.gpus = 1;
  CHECK(complaint(request) == "gpus > 0 requires backend \"qemu\"");
  request.capacity.gpus = -1;
  CHECK(complaint(request) == "gpus must not be negative");
  request.capacity.gpus = 0;
  request.capacity.mig_profiles = {{"1g.10gb", 1}};
  CHECK(complaint(request) == "mig_profiles requires backend \"qemu\"");
  request.backend = Backend::qemu;
  CHECK(complaint(request).empty());
  request.capacity.mig_profiles = {{"1g.10gb", 0}};
  CHECK(complaint(request) == "mig_profiles[1g.10gb]: count must be positive");
  request.capacity.mig_profiles = {{"half", 1}};
  CHECK(complaint(request).find("mig_profiles[half]: invalid MIG profile") == 0);
  request.capacity.mig_profiles = {{"1G.10GB", 2}};
  CHECK(must(checked_registration(request)).capacity.mig_profiles.at("1g.10gb") == 2);
  request.capacity.arch = "sparc";
  CHECK(complaint(request) == "arch must be \"amd64\" or \"arm64\" (got \"sparc\")");
}

TEST_CASE("what is not declared is what the agent found, and more than it found is said") {
  auto request = gpu_host();
  auto out = must(register_with(request, probed()));
  CHECK(out.capacity.cpus == 16);
  CHECK(out.capacity.gpus == 4);
  CHECK(out.capacity.vm_count == 4);
  CHECK(out.warnings.empty());

  request.capacity.cpus = 32;
  request.capacity.gpu_kind = "h100";
  out = must(register_with(request, probed()));
  CHECK(out.capacity.cpus == 32);
  CHECK(out.warnings ==
        std::vector<std::string>{
            "declared cpus (32) exceeds probed host capacity (16)",
            "declared gpu_kind (\"h100\") differs from probed host gpu_kind (\"a100\")"});

  request.capacity.arch = "arm64";
  const auto refused = register_with(request, probed());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        "declared arch \"arm64\" contradicts the host agent's probed arch \"amd64\"");
}

TEST_CASE("a host has to be told how many vms it may run") {
  auto request = gpu_host();
  request.capacity.vm_count = 0;
  const auto refused = register_with(request, probed());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::invalid_argument);
  CHECK(refused.error().message.find("cpus, ram_mb, storage_gb, and vm_count must be positive (") ==
        0);
}

TEST_CASE("an agent that does not answer registers only what was declared in full") {
  const Error silent{ErrorCode::unreachable, "cannot reach http://gpu-host:8091: refused"};
  auto request = gpu_host();
  const auto refused = register_with(request, silent);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::internal);
  CHECK(refused.error().details.at("reason") == "agent");
  CHECK(refused.error().message ==
        cat("could not probe host capacity and cpus/ram_mb/storage_gb were not all declared "
            "explicitly: ",
            silent.message));
  request.capacity = {.cpus = 8, .ram_mb = 1024, .storage_gb = 10, .vm_count = 2};
  const auto out = must(register_with(request, silent));
  CHECK(out.warnings == std::vector<std::string>{
                            "could not verify host agent at http://gpu-host:8091 (cannot reach "
                            "http://gpu-host:8091: refused); registering with declared capacity"});
}

TEST_CASE("a wrong token names the variable that holds the right one") {
  const Error wrong{ErrorCode::unauthorized, "unauthorized"};
  auto request = gpu_host();
  request.capacity = {.cpus = 8, .ram_mb = 1024, .storage_gb = 10, .vm_count = 2};
  const auto refused = register_with(request, wrong);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::unauthorized);
  CHECK(refused.error().message.find("host agent at http://gpu-host:8091 rejected the token. ") ==
        0);
  CHECK(refused.error().message.find("QEMU_AGENT_TOKEN") != std::string::npos);
  request.backend = Backend::firecracker;
  CHECK(register_with(request, wrong).error().message.find("FC_AGENT_TOKEN") != std::string::npos);
}

TEST_CASE("slices that the agent lists are counted where none were declared") {
  HostCapacity found = probed();
  found.mig_instances = {{"MIG-1", "1g.10gb", "", ""}, {"MIG-2", "1G.10GB", "", ""}};
  CHECK(merged_capacity({}, found).mig_profiles.at("1g.10gb") == 2);
  CHECK(merged_capacity({.mig_profiles = {{"2g.20gb", 1}}}, found).mig_profiles.size() == 1);
}

}  // namespace
}  // namespace fuse
