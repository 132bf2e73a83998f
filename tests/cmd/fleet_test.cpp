#include <nlohmann/json.hpp>

#include "base/text.h"
#include "orchestrator/api/json.h"
#include "tests/cmd/world.h"

namespace fuse::cmd {
namespace {

HostInfo gpu_host() {
  HostInfo host{.id = "gpu-1",
                .url = "http://gpu-host:8091",
                .backend = Backend::qemu,
                .capacity = {.cpus = 16,
                             .ram_mb = 65536,
                             .storage_gb = 500,
                             .vm_count = 4,
                             .gpus = 1,
                             .gpu_kind = "a100"},
                .last_seen = "2026-11-30T12:00:00Z"};
  host.capacity.gpu_devices = {{.uuid = "GPU-1", .model = "NVIDIA A100", .mig_mode = "Disabled"},
                               {.uuid = "GPU-2", .model = "NVIDIA A100"}};
  host.allocated.gpus = 1;
  host.allocated.gpu_device_uuids = {"GPU-1"};
  return host;
}

// An orchestrator that answers from a table, and keeps what it was asked.
struct FleetWorld : World {
  std::map<std::string, HttpResponse> answers{};
  std::vector<HttpRequest> asked{};

  FleetWorld() {
    variables["FUSE_URL"] = "http://fuse.example";
    elsewhere = [this](const HttpRequest& request) {
      asked.push_back(request);
      const auto found = answers.find(cat(request.method, ' ', request.target));
      return found != answers.end() ? found->second
                                    : error_response({ErrorCode::not_found, "host not found: x"});
    };
  }
  void answer(const std::string& call, const nlohmann::ordered_json& body, int status = 200) {
    answers[call] = json_response(status, body.dump());
  }
};

}  // namespace

TEST_CASE("host register sends what was said, as the documents write it") {
  FleetWorld world;
  HostInfo host = gpu_host();
  host.warnings = {"declared cpus (32) exceeds probed host capacity (16)"};
  world.answer("POST /v1/hosts", to_json(host), 201);
  CHECK(world.fuse({"host", "register", "gpu-1", "--url", "http://gpu-host:8091", "--token",
                    "sesame", "--backend", "qemu", "--gpus", "1", "--gpu-kind", "a100", "--max-vms",
                    "4", "--mig-profile", "1g.10gb=7", "--label", "zone=a"}) == success);
  REQUIRE(world.asked.size() == 1);
  CHECK(nlohmann::json::parse(world.asked[0].body) ==
        nlohmann::json::parse(
            R"({"id":"gpu-1","url":"http://gpu-host:8091","token":"sesame","backend":"qemu",
                "labels":{"zone":"a"},"capacity":{"cpus":0,"ram_mb":0,"storage_gb":0,
                "vm_count":4,"gpus":1,"gpu_kind":"a100","mig_profiles":{"1g.10gb":7}}})"));
  CHECK(world.out.str().find("gpu-1: registered, 16 CPUs") == 0);
  CHECK(world.err.str().find("warning: declared cpus (32)") != std::string::npos);
  CHECK(world.out.str().find("sesame") == std::string::npos);
}

TEST_CASE("what cannot be meant is told before anybody is asked") {
  FleetWorld world;
  const auto refused = [&world](std::vector<std::string> more) {
    std::vector<std::string> words = {"host", "register", "h", "--url", "http://h"};
    words.insert(words.end(), more.begin(), more.end());
    world.err.str("");
    return world.fuse(words) == wrong_usage ? world.err.str() : "not refused";
  };
  CHECK(refused({"--backend", "xen"}).find("firecracker or qemu") != std::string::npos);
  CHECK(refused({"--backend", "qemu", "--mig-profile", "1g.10gb"}).find("PROFILE=COUNT") !=
        std::string::npos);
  CHECK(refused({"--backend", "qemu", "--label", "zone"}).find("KEY=VALUE") != std::string::npos);
  CHECK(refused({}).find("FC_AGENT_TOKEN") != std::string::npos);
  CHECK(world.asked.empty());
}

TEST_CASE("hosts are shown with what is free, and one with who holds what") {
  FleetWorld world;
  HostInfo host = gpu_host();
  host.reachable = false;
  world.answer("GET /v1/hosts", to_json(HostPage{.hosts = {host}}));
  world.answer("GET /v1/hosts/gpu-1", to_json(host));
  CHECK(world.fuse({"host", "list"}) == success);
  CHECK(world.out.str().find("unreachable, active") != std::string::npos);
  CHECK(world.out.str().find("2 a100, 0 free, 1 kept back") != std::string::npos);
  world.out.str("");
  CHECK(world.fuse({"host", "get", "gpu-1"}) == success);
  CHECK(world.out.str().find("GPU-1") != std::string::npos);
  CHECK(world.out.str().find("in use") != std::string::npos);
  world.out.str("");
  CHECK(world.fuse({"-o", "json", "host", "metrics", "gpu-1"}) == success);
  const auto metrics = nlohmann::json::parse(world.out.str());
  CHECK(metrics["host_id"] == "gpu-1");
  CHECK(metrics["allocated"]["gpus"] == 1);
  CHECK(world.fuse({"host", "get", "none"}) == failed);
}

TEST_CASE("hosts are cordoned, drained and removed by name") {
  FleetWorld world;
  const HttpResponse done{.status = 204};
  for (const char* action : {"cordon", "uncordon", "drain"}) {
    world.answers[cat("POST /v1/hosts/gpu-1?action=", action)] = done;
  }
  world.answers["DELETE /v1/hosts/gpu-1"] = done;
  world.answer("GET /v1/hosts/gpu-1", to_json(gpu_host()));
  CHECK(world.fuse({"host", "cordon", "gpu-1"}) == success);
  CHECK(world.fuse({"host", "uncordon", "gpu-1"}) == success);
  CHECK(world.fuse({"host", "drain", "gpu-1"}) == success);
  CHECK(world.fuse({"host", "remove", "gpu-1"}) == wrong_usage);
  CHECK(world.fuse({"host", "rm", "gpu-1", "--yes"}) == success);
  CHECK(world.fuse({"host", "cordon", "none"}) == failed);
}

TEST_CASE("explain says where a file would go, and exits with 3 when nowhere") {
  FleetWorld world;
  world.folder.write("Fusefile",
                     "version: 1\nname: a\nresources: {gpu: 1, gpu_kind: a100}\nrun: x\n");
  Explanation explanation{.host_id = "gpu-1", .hosts = {{.host_id = "gpu-1", .score = 7}}};
  world.answer("POST /v1/placements/explain", to_json(explanation));
  CHECK(world.fuse({"explain"}) == success);
  CHECK(world.out.str().find("would run on gpu-1\n") == 0);
  CHECK(nlohmann::json::parse(world.asked.at(0).body)["spec"]["gpus"] == 1);
  explanation = {.message = "no host has sufficient capacity: need 1 gpu",
                 .hosts = {{.host_id = "gpu-1",
                            .reasons = {{"gpu-count", "has 0 of 1 gpus free", "0", "1"}}}}};
  world.answer("POST /v1/placements/explain", to_json(explanation));
  world.out.str("");
  CHECK(world.fuse({"explain"}) == no_placement);
  CHECK(world.out.str().find("cannot be placed: no host has sufficient capacity") == 0);
  CHECK(world.out.str().find("gpu-count: has 0 of 1 gpus free") != std::string::npos);
}

TEST_CASE("an orchestrator that cannot explain is said to be one") {
  FleetWorld world;
  world.folder.write("Fusefile", "version: 1\nname: a\nrun: x\n");
  world.answers["POST /v1/placements/explain"] =
      error_response({ErrorCode::route_not_found, "no such route: POST /v1/placements/explain"});
  CHECK(world.fuse({"explain"}) == failed);
  CHECK(world.err.str().find("does not explain placements") != std::string::npos);
}

TEST_CASE("a key is printed alone, so that a script can take it") {
  FleetWorld world;
  world.answer("POST /v1/api-keys",
               to_json(NewApiKey{.key = {.id = "ak_1", .created_at = "2026-11-30T12:00:00Z"},
                                 .secret = "fuse_sk_x"}),
               201);
  world.answer("GET /v1/api-keys",
               to_json(std::vector<ApiKey>{{.id = "ak_1", .created_at = "2026-11-30T12:00:00Z"}}));
  world.answers["DELETE /v1/api-keys/ak_1"] = {.status = 204};
  CHECK(world.fuse({"apikeys", "create", "--label", "ci"}) == success);
  CHECK(world.out.str() == "fuse_sk_x\n");
  world.out.str("");
  CHECK(world.fuse({"-o", "json", "apikeys", "list"}) == success);
  CHECK(nlohmann::json::parse(world.out.str())[0]["id"] == "ak_1");
  CHECK(world.fuse({"apikeys", "revoke", "ak_1"}) == success);
}

TEST_CASE("status tells of the fleet, and that there is no context where there is none") {
  FleetWorld world;
  world.answer("GET /v1/hosts?limit=200", to_json(HostPage{.hosts = {gpu_host()}}));
  CHECK(world.fuse({"-o", "json", "status"}) == success);
  const auto status = nlohmann::json::parse(world.out.str());
  CHECK(status["host_count"] == 1);
  CHECK(status["host_count_complete"] == true);
  CHECK(status["base_url"] == "http://fuse.example");
  world.out.str("");
  CHECK(world.fuse({"status"}) == success);
  CHECK(world.out.str().find("active host") != std::string::npos);
  world.variables.erase("FUSE_URL");
  world.variables["HOME"] = world.folder.path().native();
  CHECK(world.fuse({"status"}) == failed);
  CHECK(world.err.str().find("no active context") != std::string::npos);
}

}  // namespace fuse::cmd
