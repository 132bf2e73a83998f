// Times placing on a large fleet; tests/bench/place runs it.
//
//   bench_place FLEET RUNS     FLEET: whole or mig
//
// Prints nanoseconds, one run a line: "place", and "refuse" where no host will do.

#include <chrono>
#include <iostream>
#include <random>
#include <string>

#include "base/text.h"
#include "orchestrator/gpu_choice.h"
#include "orchestrator/scheduler.h"

namespace fuse {
namespace {

constexpr int hosts = 10'000;

// Most of it is taken, as in a fleet that is used.
FleetHost host_of(int number, bool mig, std::mt19937& engine) {
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(engine); };
  FleetHost out{.version = 1};
  out.info = {.id = cat("host-", number), .backend = Backend::qemu, .region = "eu"};
  HostCapacity& all = out.info.capacity;
  HostCapacity& used = out.info.allocated;
  all = {.cpus = 128, .ram_mb = 1'000'000, .storage_gb = 10'000, .vm_count = 64, .gpus = 8};
  all.arch = "amd64";
  const int devices = mig ? 7 : 8;
  const int taken = below(devices + 1);
  for (int device = 0; device < devices; ++device) {
    const std::string uuid = cat(mig ? "MIG-" : "GPU-", number, "-0000-0000-0000-", device);
    auto& held = mig ? used.mig_instance_uuids : used.gpu_device_uuids;
    if (device < taken) held.push_back(uuid);
    if (mig) {
      all.mig_instances.push_back({.uuid = uuid, .profile = "1g.10gb", .kind = "NVIDIA H100"});
    } else {
      all.gpu_devices.push_back({.uuid = uuid, .model = "NVIDIA H100", .iommu_group = cat(device)});
    }
  }
  used.cpus = taken * 12;
  used.ram_mb = taken * 100'000;
  used.vm_count = taken;
  used.gpus = mig ? 0 : taken;
  out.free = count_free(out.info);
  return out;
}

void time_it(const char* what, const ResourceSpec& spec, const Fleet& fleet, int runs, bool fits) {
  for (int run = 0; run < runs; ++run) {
    const auto begun = std::chrono::steady_clock::now();
    const Decision decision = place(spec, fleet);
    const auto took = std::chrono::steady_clock::now() - begun;
    if (decision.placement.has_value() != fits) {
      std::cerr << what << ": " << decision.refusal.message << '\n';
      return;
    }
    std::cout << what << ' ' << took / std::chrono::nanoseconds(1) << '\n';
  }
}

int run(bool mig, int runs) {
  std::mt19937 engine(1);
  Fleet fleet;
  for (int number = 0; number < hosts; ++number) fleet.push_back(host_of(number, mig, engine));
  ResourceSpec spec{.cpus = 8, .ram_mb = 65'536, .storage_gb = 100, .gpus = 1};
  spec.gpu_kind = "h100";
  spec.region = "eu";
  if (mig) spec.gpu_profile = "1g.10gb";
  time_it("place", spec, fleet, runs, true);
  spec.region = "us";
  time_it("refuse", spec, fleet, runs, false);
  return 0;
}

}  // namespace
}  // namespace fuse

int main(int count, char** words) {
  if (count != 3) return 2;
  return fuse::run(std::string(words[1]) == "mig", std::stoi(words[2]));
}
