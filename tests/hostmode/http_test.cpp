#include "hostmode/http.h"

#include <nlohmann/json.hpp>
#include <thread>

#include "base/ids.h"
#include "base/text.h"
#include "net/attach_frames.h"
#include "orchestrator/api/agent_json.h"
#include "tests/catch.h"
#include "tests/fakes/fake_host_agent.h"
#include "tests/net/wire.h"

namespace fuse {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

const std::string token = "s3cret-t0ken";
const std::string uid = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

// The agent's HTTP API in front of a host that exists in memory.
struct AgentWorld {
  FakeHostAgent host{};
  AgentMetrics metrics{};
  MemoryLog log{};
  SystemClock clock{};

  [[nodiscard]] AgentSite site() {
    return {.agent = host.agent(),
            .metrics = metrics,
            .log = log,
            .clock = clock,
            .token = token,
            .most_body = 4096,
            .most_upload = 100'000,
            .devices_in_use = [] { return std::set<std::string>{"GPU-2"}; }};
  }
  HttpResponse ask(const std::string& method, const std::string& target,
                   const std::string& body = "", HttpHeaders headers = {}) {
    if (!headers.has("Authorization")) headers.add("Authorization", cat("Bearer ", token));
    return make_agent_handler(site())(make_request(method, target, body, std::move(headers)));
  }
  // "409 text" of an answer.
  std::string said(const std::string& method, const std::string& target,
                   const std::string& body = "") {
    const HttpResponse response = ask(method, target, body);
    return cat(response.status, " ", trim(response.body));
  }
  std::string make_vm(const std::string& more = "") {
    return said("POST", "/v1/vm", cat(R"({"name":"fuse-a","uid":")", uid, "\"", more, "}"));
  }
};

std::string lost_length(std::size_t size) {
  return cat("request body of ", size, " bytes exceeds the 4096 byte limit");
}

}  // namespace

TEST_CASE("every route of the agent wants the token, and nothing else will do") {
  AgentWorld world;
  const std::vector<std::pair<std::string, std::string>> routes = {
      {"GET", "/"},
      {"GET", "/healthz"},
      {"GET", "/metrics"},
      {"GET", "/v1/capacity"},
      {"POST", "/v1/vm"},
      {"GET", "/v1/vm"},
      {"GET", "/v1/vm/a"},
      {"DELETE", "/v1/vm/a"},
      {"POST", "/v1/vm/a/upload"},
      {"POST", "/v1/vm/a/exec"},
      {"POST", "/v1/vm/a/start-agent"},
      {"GET", "/v1/vm/a/attach?tty=1"},
      {"POST", "/v1/vm/a/snapshot"},
      {"POST", "/v1/vm/a/restore"},
      {"GET", "/v1/vm/a/snapshots"},
      {"POST", "/v1/vm/a/job"},
      {"POST", "/v1/vm/a/job?action=stop"},
      {"GET", "/v1/vm/a/job"},
      {"GET", "/v1/vm/a/logs"},
      {"GET", "/no/such/route"},
  };
  for (const auto& [method, target] : routes) {
    for (const std::string& header :
         {std::string(), std::string("Bearer "), cat("Bearer ", token, "x"), cat("bearer ", token),
          token, cat("Basic ", token), cat("Bearer ", token.substr(1))}) {
      const HttpResponse response = world.ask(method, target, "", {{"Authorization", header}});
      INFO(method << " " << target << " with " << header);
      CHECK(response.status == 401);
      CHECK(response.body == "unauthorized");
      CHECK(response.headers.get("Content-Type") == "text/plain; charset=utf-8");
    }
  }
  CHECK(world.host.calls().empty());
  CHECK(world.log.lines().find(token) == std::string::npos);
  // A site without a token lets nobody in, not even those without one.
  AgentSite open = world.site();
  open.token.clear();
  CHECK(
      make_agent_handler(open)(make_request("GET", "/healthz", "", {{"Authorization", "Bearer "}}))
          .status == 401);
}

TEST_CASE("the agent says what it is and what it can do") {
  AgentWorld world;
  for (const char* const path : {"/", "/healthz"}) {
    const HttpResponse response = world.ask("GET", path);
    CHECK(response.status == 200);
    CHECK(response.body.starts_with(R"({"ok":true,"app_name":"qemu-agent","version":")"));
    CHECK(response.headers.get("Content-Type") == "application/json");
    const auto health = parse_agent_health(json::parse(response.body));
    REQUIRE(health);
    CHECK(health->has("uid"));
    CHECK(health->has("jobs"));
  }
}

TEST_CASE("the capacity has every field of the wire, and MIG's only with instances") {
  AgentWorld world;
  CHECK(json::parse(world.ask("GET", "/v1/capacity").body) == json::parse(R"({
    "cpus": 8, "ram_mb": 16384, "storage_gb": 100, "arch": "amd64", "gpus": 0,
    "gpu_kind": "", "gpu_devices": []})"));
  HostCapacity capacity{.cpus = 4, .gpus = 1, .gpu_kind = "a100", .arch = "amd64"};
  capacity.gpu_devices = {{.uuid = "GPU-1",
                           .model = "NVIDIA A100",
                           .pci_bus_id = "0000:41:00.0",
                           .memory_mb = 40960,
                           .mig_mode = "N/A",
                           .numa_node = 1}};
  capacity.mig_instances = {{.uuid = "MIG-1", .profile = "1g.5gb", .kind = "a100"}};
  capacity.mig_profiles = {{"1g.5gb", 1}};
  world.host.set_capacity(capacity);
  const json got = json::parse(world.ask("GET", "/v1/capacity").body);
  CHECK(got["gpu_devices"] == json::parse(R"([{"index": 0, "uuid": "GPU-1",
    "model": "NVIDIA A100", "pci_bus_id": "0000:41:00.0", "memory_mb": 40960,
    "driver_version": "", "compute_cap": "", "mig_capable": false, "mig_mode": "N/A",
    "numa_node": 1}])"));
  CHECK(got["mig_instances"] == json::parse(R"([{"uuid": "MIG-1", "profile": "1g.5gb",
    "kind": "a100", "parent_gpu_uuid": ""}])"));
  CHECK(got["mig_profiles"] == json::parse(R"({"1g.5gb": 1})"));
}

TEST_CASE("a VM is made, found, listed and removed by the routes of the wire") {
  AgentWorld world;
  CHECK(world.make_vm() == cat(R"(200 {"vm_id":"fuse-a","url":"","uid":")", uid, "\"}"));
  CHECK(world.make_vm() == "409 vm fuse-a already exists");
  CHECK(world.said("GET", "/v1/vm/fuse-a").starts_with(R"(200 {"vm_id":"fuse-a")"));
  CHECK(world.said("GET", cat("/v1/vm/", uid)).starts_with(R"(200 {"vm_id":"fuse-a")"));
  CHECK(world.said("GET", "/v1/vm").starts_with(R"(200 {"vms":[{"vm_id":"fuse-a")"));
  CHECK(world.said("GET", "/v1/vm?prefix=fuse-").find("fuse-a") != std::string::npos);
  CHECK(world.said("GET", "/v1/vm?x=1&prefix=other") == R"(200 {"vms":[]})");
  // As it stands there: nothing is decoded.
  CHECK(world.said("GET", "/v1/vm?prefix=fuse%2D") == R"(200 {"vms":[]})");
  world.host.kill_vm(uid, "QEMU was killed by signal 9");
  const json ended = json::parse(world.ask("GET", "/v1/vm/fuse-a").body);
  CHECK(ended["alive"] == false);
  CHECK(ended["ended"] == "QEMU was killed by signal 9");

  const HttpResponse gone = world.ask("DELETE", "/v1/vm/fuse-a");
  CHECK(gone.status == 204);
  CHECK(gone.body.empty());
  CHECK(world.said("DELETE", "/v1/vm/fuse-a") == "404 vm not found");
  CHECK(world.said("GET", "/v1/vm/fuse-a") == "404 vm not found");
}

TEST_CASE("a create passes everything on, and takes its key and cluster from headers") {
  AgentWorld world;
  const HttpResponse made =
      world.ask("POST", "/v1/vm",
                R"({"name":"fuse-a","cpus":0,"memory_mb":512,"storage_gb":20,"region":"eu",
                    "image":"cuda","gpus":1,"gpu_kind":"A100","gpu_profile":"",
                    "mig_instance_uuids":[],"gpu_device_uuids":["GPU-1"],"later":{"x":1},"uid":")" +
                    uid + "\"}",
                {{"Idempotency-Key", "op-7"}, {"X-Fuse-Cluster", "cluster-1"}});
  REQUIRE(made.status == 200);
  CHECK(json::parse(made.body)["cluster"] == "cluster-1");
  const auto vms = world.host.vms();
  const CreateVmRequest& request = vms.at(uid).request;
  CHECK(request.cpus == 0);
  CHECK(request.memory_mb == 512);
  CHECK(request.storage_gb == 20);
  CHECK(request.region == "eu");
  CHECK(request.image == "cuda");
  CHECK(request.gpus == 1);
  CHECK(request.gpu_kind == "A100");
  CHECK(request.gpu_device_uuids == std::vector<std::string>{"GPU-1"});
  CHECK(request.idempotency_key == "op-7");
  CHECK(request.cluster == "cluster-1");
}

TEST_CASE("what an agent refuses has the code of its kind and its own words") {
  AgentWorld world;
  std::optional<Error> answer;
  world.host.before = [&](const std::string&) { return answer; };
  const std::vector<std::pair<ErrorCode, int>> codes = {
      {ErrorCode::invalid_argument, 400}, {ErrorCode::conflict, 409},
      {ErrorCode::unimplemented, 501},    {ErrorCode::unavailable, 503},
      {ErrorCode::unreachable, 502},      {ErrorCode::internal, 500},
      {ErrorCode::not_found, 404}};
  for (const auto& [code, status] : codes) {
    answer = Error{code, "why it is so"};
    CHECK(world.said("GET", "/v1/vm/a") == cat(status, " why it is so"));
    CHECK(world.said("GET", "/v1/capacity") == cat(status, " why it is so"));
    // Only the image of a create can be unknown.
    const int of_create = code == ErrorCode::not_found ? 400 : status;
    CHECK(world.said("POST", "/v1/vm", R"({"name":"a"})") == cat(of_create, " why it is so"));
  }
}

TEST_CASE("a route that is none and a method that does not fit are not found") {
  AgentWorld world;
  for (const auto& [method, target] :
       std::vector<std::pair<std::string, std::string>>{{"GET", "/v1"},
                                                        {"GET", "/v1/vm/"},
                                                        {"PUT", "/v1/vm"},
                                                        {"POST", "/healthz"},
                                                        {"POST", "/v1/vm/a/start-surfd"},
                                                        {"POST", "/v1/vm/a/fork"},
                                                        {"DELETE", "/v1/vm/a/snapshots/s1"},
                                                        {"GET", "/v1/vm/a/exec"},
                                                        {"POST", "/v1/vm/a/job?action=pause"}}) {
    CHECK(world.said(method, target) == "404 not found");
  }
}

TEST_CASE("an upload is base64 with an absolute path, and may have a mode") {
  AgentWorld world;
  world.make_vm();
  const std::string route = "/v1/vm/fuse-a/upload";
  CHECK(world.said("POST", route, R"({"path":"/fuse/env","content_b64":"/wA="})") ==
        R"(200 {"ok":true})");
  CHECK(world.said("POST", route, R"({"path":"/x","content_b64":"","mode":"0755"})") ==
        R"(200 {"ok":true})");
  const auto vms = world.host.vms();
  CHECK(vms.at(uid).files.at("/fuse/env").bytes == std::string("\xff\0", 2));
  CHECK(vms.at(uid).files.at("/fuse/env").mode == 0);
  CHECK(vms.at(uid).files.at("/x").mode == 0755);

  CHECK(world.said("POST", route, R"({"content_b64":""})") == "400 missing field: 'path'");
  CHECK(world.said("POST", route, R"({"path":"/a"})") == "400 missing field: 'content_b64'");
  CHECK(world.said("POST", route) == "400 missing field: 'path'");
  CHECK(world.said("POST", route, R"({"path":"/a","content_b64":"*"})") ==
        "400 bad base64: content_b64 must be standard base64 with padding");
  CHECK(world.said("POST", route, R"({"path":"a","content_b64":""})") ==
        "400 path must be absolute, got \"a\"");
  CHECK(world.said("POST", route, R"({"path":"/a","content_b64":"","mode":"9"})") ==
        "400 mode: \"9\" is not octal, as in \"0755\"");
  CHECK(world.said("POST", route, "{").starts_with("400 bad JSON: "));
  CHECK(world.said("POST", route, "[1]") == "400 bad JSON: an object is expected");
  CHECK(world.said("POST", "/v1/vm/other/upload", "{}") == "404 vm not found");
}

TEST_CASE("an exec answers output as base64, whatever the command's code") {
  AgentWorld world;
  world.make_vm();
  ExecRequest asked;
  world.host.on_exec = [&](const ExecRequest& request) {
    asked = request;
    return ExecResult{.exit_code = 3, .out = std::string("\xff\0", 2), .err = "e"};
  };
  const std::string route = "/v1/vm/fuse-a/exec";
  CHECK(world.said("POST", route, R"({"cmd":["a","b c"],"timeout_ms":5000})") ==
        R"(200 {"exit_code":3,"stdout":"/wA=","stderr":"ZQ=="})");
  CHECK(asked.cmd == std::vector<std::string>{"a", "b c"});
  CHECK(asked.timeout_ms == 5000);
  CHECK(world.said("POST", route, "{}") == "400 missing field: 'cmd'");
  for (const char* const cmd : {"[]", "\"ls\"", "{}", "[1]", "7"}) {
    CHECK(world.said("POST", route, cat("{\"cmd\":", cmd, "}")) ==
          "400 cmd must be non-empty array");
  }
  CHECK(world.said("POST", "/v1/vm/other/exec", R"({"cmd":["a"]})") == "404 vm not found");
}

TEST_CASE("start-agent answers where the exposed ports are") {
  AgentWorld world;
  world.make_vm();
  const std::string route = "/v1/vm/fuse-a/start-agent";
  const std::string paths = R"("manifest_path":"/fuse/manifest.json","secrets_path":"/fuse/s")";
  CHECK(world.said("POST", route, cat("{", paths, "}")) == R"(200 {"ok":true,"endpoints":[]})");
  CHECK(world.said("POST", route,
                   cat("{", paths, R"(,"gateway":"","expose":[{"port":80,"as":"http"}]})")) ==
        R"(200 {"ok":true,"endpoints":[{"as":"http","url":"127.0.0.1:20080","port":80,)"
        R"("host_port":20080}]})");
  CHECK(world.said("POST", route, "{}") == "400 missing field: 'manifest_path'");
  CHECK(world.said("POST", route, R"({"manifest_path":"a"})") ==
        "400 missing field: 'secrets_path'");
  CHECK(world.said("POST", "/v1/vm/other/start-agent", "{}") == "404 vm not found");
}

TEST_CASE("snapshots are refused in the words of the wire") {
  AgentWorld world;
  const std::string refusal = "501 snapshots are not supported for gpu passthrough vms";
  CHECK(world.said("POST", "/v1/vm/a/snapshot") == refusal);
  CHECK(world.said("GET", "/v1/vm/a/snapshots") == refusal);
  CHECK(world.said("POST", "/v1/vm/a/restore", R"({"snapshot_id":"s"})") == refusal);
  CHECK(world.said("POST", "/v1/vm/a/restore", "{}") == "400 missing field: 'snapshot_id'");
}

TEST_CASE("a job is started once, looked at and stopped, and its log begins where it is asked") {
  AgentWorld world;
  world.make_vm();
  const std::string route = "/v1/vm/fuse-a/job";
  CHECK(world.said("GET", route) == "404 no job");
  CHECK(world.said("POST", route,
                   R"({"steps":[{"name":"s","script":"a","workdir":"/w"}],"script":"run",
                       "env":{"K":"v"},"workdir":"/x","timeout_seconds":60,"grace_seconds":5})") ==
        R"(202 {"ok":true})");
  CHECK(world.said("POST", route, "{}") == "409 the vm has had a job");
  const auto vms = world.host.vms();
  const JobSpec& job = *vms.at(uid).job;
  REQUIRE(job.steps.size() == 1);
  CHECK(job.steps[0].workdir == "/w");
  CHECK(job.script == "run");
  CHECK(job.env.at("K") == "v");
  CHECK(job.timeout_seconds == 60);
  CHECK(job.grace_seconds == 5);

  world.host.print(uid, "one\ntwo\n");
  CHECK(json::parse(world.ask("GET", route).body) ==
        json::parse(R"({"phase":"build","state":"running","step":1,"steps":1,"log_bytes":8})"));
  const HttpResponse log = world.ask("GET", "/v1/vm/fuse-a/logs?tail=1");
  CHECK(log.status == 200);
  CHECK(log.headers.get("X-Fuse-Log-Offset") == "4");
  CHECK(log.headers.get("Content-Type") == "application/octet-stream");
  CHECK(world.said("GET", "/v1/vm/fuse-a/logs?offset=-1") ==
        "400 offset: \"-1\" is not a whole number of 0 or more");
  CHECK(world.said("GET", "/v1/vm/other/logs") == "404 no log");
  CHECK(world.said("POST", cat(route, "?action=stop")) == R"(202 {"ok":true})");
  CHECK(json::parse(world.ask("GET", route).body)["reason"] == "stopped");
}

TEST_CASE("attach asks for the VM, then for a terminal, and not for an Upgrade") {
  AgentWorld world;
  world.make_vm();
  CHECK(world.said("GET", "/v1/vm/other/attach") == "404 vm not found");
  CHECK(world.said("GET", "/v1/vm/fuse-a/attach?cmd=ls") ==
        "400 attach requires tty=1; use /exec for non-interactive commands");
  CHECK(world.ask("GET", "/v1/vm/fuse-a/attach?tty=true").upgrade.has_value());
  CHECK(world.ask("GET", "/v1/vm/fuse-a/attach?tty=0&cmd=cat").upgrade.has_value());
}

TEST_CASE("an attached client's bytes are framed both ways, those behind its head too") {
  AgentWorld world;
  world.make_vm();
  const TestServer test(make_agent_handler(world.site()), agent_server_options(world.site()));
  RawClient client = test.connect();
  client.send(cat("GET /v1/vm/fuse-a/attach?tty=1&rows=9&cols=x&cmd=sh&cmd=-c&cmd=a+b HTTP/1.1\r\n",
                  "Authorization: Bearer ", token, "\r\nUpgrade: fuse-attach/1\r\n\r\n",
                  encode_attach_frame({AttachFrameType::stdin_bytes, "early"})));
  CHECK(
      client.read_until("\r\n\r\n") ==
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: fuse-attach/1\r\nConnection: Upgrade\r\n\r\n");
  client.read_until(encode_attach_frame({AttachFrameType::stdout_bytes, "early"}));
  client.send(encode_attach_frame({AttachFrameType::stdin_bytes, ""}));
  CHECK(client.read_all() == encode_attach_frame({AttachFrameType::exit, encode_exit(5)}));
}

TEST_CASE("what is wrong by a request's head is answered without its body") {
  AgentWorld world;
  const TestServer test(make_agent_handler(world.site()), agent_server_options(world.site()));
  const auto answer = [&](const std::string& head) {
    RawClient client = test.connect();
    client.send(cat(head, "\r\n\r\n"));
    return client.read_answer();
  };
  const std::string auth = cat("\r\nAuthorization: Bearer ", token);
  CHECK(answer("POST /v1/vm HTTP/1.1\r\nContent-Length: 4096") == "401|unauthorized");
  CHECK(answer("POST /v1/vm HTTP/1.1\r\nTransfer-Encoding: chunked") == "401|unauthorized");
  CHECK(answer(cat("POST /nowhere HTTP/1.1\r\nContent-Length: 10", auth)) == "404|not found");
  CHECK(answer(cat("POST /v1/vm HTTP/1.1\r\nTransfer-Encoding: chunked", auth)) ==
        "411|chunked request bodies are not supported; send Content-Length");
  CHECK(answer(cat("POST /v1/vm HTTP/1.1\r\nContent-Length: 4097", auth)) ==
        cat("413|", lost_length(4097)));
  CHECK(answer(cat("POST /v1/vm/a/upload HTTP/1.1\r\nContent-Length: 100001", auth)) ==
        "413|request body of 100001 bytes exceeds the 100000 byte limit");
  CHECK(answer(cat("POST /v1/vm HTTP/1.1\r\nContent-Length: many", auth)) ==
        "400|invalid Content-Length");
  CHECK(world.host.calls().empty());

  RawClient cut = test.connect();
  cut.send(cat("POST /v1/vm HTTP/1.1\r\nContent-Length: 100", auth, "\r\n\r\n{\"name\""));
  cut.shutdown_write();
  CHECK(cut.read_answer() == "400|request body shorter than Content-Length");
}

TEST_CASE("a large upload arrives whole, and one call follows another on its connection") {
  AgentWorld world;
  world.make_vm();
  AgentSite site = world.site();
  site.most_upload = std::size_t{64} << 20U;
  const TestServer test(make_agent_handler(site), agent_server_options(site));
  const std::string bytes = random_bytes(9'000'000);
  const std::string body =
      cat(R"({"path":"/data/large","content_b64":")", base64_encode(bytes), "\"}");
  RawClient client = test.connect();
  client.send(cat("POST /v1/vm/fuse-a/upload HTTP/1.1\r\nAuthorization: Bearer ", token,
                  "\r\nContent-Length: ", body.size(), "\r\n\r\n"));
  client.send(body);
  CHECK(client.read_answer() == "200|{\"ok\":true}\n");
  CHECK(world.host.vms().at(uid).files.at("/data/large").bytes == bytes);
  client.send(cat("GET /v1/vm/nobody HTTP/1.1\r\nAuthorization: Bearer ", token, "\r\n\r\n"));
  CHECK(client.read_answer() == "404|vm not found");
}

TEST_CASE("a client that stalls is dropped, and others are served meanwhile") {
  AgentWorld world;
  HttpServerOptions options = agent_server_options(world.site());
  options.body_time = 300ms;
  const TestServer test(make_agent_handler(world.site()), options);
  RawClient stalled = test.connect();
  stalled.send(cat("POST /v1/vm HTTP/1.1\r\nContent-Length: 100\r\nAuthorization: Bearer ", token,
                   "\r\n\r\n{"));
  RawClient other = test.connect();
  other.send(cat("GET /healthz HTTP/1.1\r\nAuthorization: Bearer ", token, "\r\n\r\n"));
  CHECK(other.read_answer().starts_with("200|"));
  CHECK(stalled.read_answer() == "408|request body did not arrive in time");
  CHECK(stalled.read_all().empty());
}

TEST_CASE("metrics count VMs, devices, creates and requests, each route under its pattern") {
  AgentWorld world;
  HostCapacity capacity{};
  capacity.gpu_devices = {{.uuid = "GPU-1", .model = "NVIDIA \"A100\""},
                          {.uuid = "GPU-2", .model = "NVIDIA \"A100\""}};
  world.host.set_capacity(capacity);
  world.make_vm();
  world.make_vm();
  world.said("GET", "/v1/vm/fuse-a");
  world.said("GET", "/v1/vm/other");
  world.said("GET", "/nowhere");
  const std::string text = world.ask("GET", "/metrics").body;
  const auto has = [&](const std::string& line) {
    INFO(text);
    CHECK(text.find(line + "\n") != std::string::npos);
  };
  has(R"(fuse_agent_vms{state="running"} 1)");
  has(R"(fuse_agent_vms{state="ended"} 0)");
  has(R"(fuse_agent_devices{kind="NVIDIA \"A100\"",profile="",state="free"} 1)");
  has(R"(fuse_agent_devices{kind="NVIDIA \"A100\"",profile="",state="used"} 1)");
  has(R"(fuse_agent_creates_total{outcome="made"} 1)");
  has(R"(fuse_agent_creates_total{outcome="failed"} 1)");
  has(R"(fuse_agent_create_duration_seconds_bucket{le="+Inf"} 1)");
  has(R"(fuse_agent_create_duration_seconds_count 1)");
  has(R"(fuse_agent_http_requests_total{route="/v1/vm/{id}",method="GET",code="200"} 1)");
  has(R"(fuse_agent_http_requests_total{route="/v1/vm/{id}",method="GET",code="404"} 1)");
  has(R"(fuse_agent_http_requests_total{route="other",method="other",code="404"} 1)");
}

TEST_CASE("the access log has a line for each request and none of its secrets") {
  AgentWorld world;
  world.make_vm();
  world.ask("GET", "/v1/vm/fuse-a/attach?tty=1&cmd=login&cmd=hunter2");
  world.ask("POST", "/v1/vm/fuse-a/job", R"({"script":"a","env":{"KEY":"hunter2"}})");
  const std::string lines = world.log.lines();
  CHECK(lines.find("request method=GET path=/v1/vm/fuse-a/attach status=101 ms=") !=
        std::string::npos);
  CHECK(lines.find("path=/v1/vm/fuse-a/job status=202") != std::string::npos);
  CHECK(lines.find("hunter2") == std::string::npos);
  CHECK(lines.find(token) == std::string::npos);
}

}  // namespace fuse
