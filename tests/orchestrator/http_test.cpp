#include "orchestrator/http.h"

#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/json_reader.h"
#include "base/text.h"
#include "base/version.h"
#include "orchestrator/http_routes.h"
#include "tests/orchestrator/engine.h"

namespace fuse {
namespace {

using nlohmann::json;

struct Api {
  Engine engine{};
  Callers callers;
  HttpHandler handler;

  explicit Api(CallerRules rules = {})
      : callers(*engine.store, engine.clock, std::move(rules)),
        handler(make_api_handler({.environments = engine.service,
                                  .hosts = engine.fleet,
                                  .callers = callers,
                                  .metrics = engine.metrics,
                                  .clock = engine.clock,
                                  .log = engine.log,
                                  .keepalive = std::chrono::milliseconds(1)})) {}

  HttpResponse call(const std::string& method, const std::string& target,
                    const std::string& body = "", const HttpHeaders& headers = {}) {
    return handler(make_request(method, target, body, headers));
  }
  // An environment that runs, without waiting for threads.
  void up(const std::string& task) {
    REQUIRE(call("POST", "/v1/environments", R"({"task_id":")" + task + R"(","spec":{}})",
                 {{"Prefer", "respond-async"}})
                .status == 201);
    engine.run_until_idle();
  }
};

json body_of(const HttpResponse& response) {
  return must(parse_json(response.body));
}

// Collects what a handler streams; ends it at a given length or text.
struct Collected final : HttpStream {
  std::string text{};
  std::stop_source source{};
  std::function<bool(const std::string&)> enough = [](const std::string&) { return false; };
  bool write(std::string_view bytes) override {
    text += bytes;
    if (enough(text)) source.request_stop();
    return !source.stop_requested();
  }
  [[nodiscard]] std::stop_token stop() const override { return source.get_token(); }
};

TEST_CASE("every answer has a request id and names the server") {
  Api api;
  const auto given = api.call("GET", "/health", "", {{"X-Request-ID", "abc_DEF-1"}});
  CHECK(given.status == 200);
  CHECK(given.body == "{\"status\":\"ok\"}\n");
  CHECK(given.headers.get("X-Request-ID") == "abc_DEF-1");
  CHECK(given.headers.get("Server") == cat("fuse-orchestrator/", version()));
  for (const std::string& bad : {std::string("a b"), std::string(129, 'a'), std::string()}) {
    const auto made = api.call("GET", "/nope", "", {{"X-Request-ID", bad}});
    const std::string id = made.headers.get("X-Request-ID").value_or("");
    CHECK(id.size() == 36);
    CHECK(id.rfind("req_", 0) == 0);
  }
}

TEST_CASE("unknown paths, methods and actions are told apart") {
  Api api;
  const auto path = api.call("GET", "/v1/environments/x/computer");
  CHECK(path.status == 404);
  CHECK(body_of(path)["error"]["code"] == "route_not_found");
  CHECK(body_of(path)["error"]["message"] == "no such route: GET /v1/environments/x/computer");
  const auto method = api.call("PUT", "/v1/environments");
  CHECK(method.status == 405);
  CHECK(method.body.empty());
  const auto action = api.call("POST", "/v1/environments/x?action=dance", "{}");
  CHECK(action.status == 400);
  CHECK(body_of(action)["error"]["message"] == "missing or unknown action query parameter");
}

TEST_CASE("version and readiness need nothing") {
  Api api;
  const json told = body_of(api.call("GET", "/v1/version"));
  CHECK(told["service"] == "fuse-orchestrator");
  CHECK(told["version"] == std::string(version()));
  CHECK(told["build_id"] == build_id());
  CHECK(api.call("GET", "/ready").body ==
        "{\"status\":\"ready\",\"checks\":{\"database\":\"ok\"}}\n");
}

TEST_CASE("a create that is answered at once says what will be") {
  Api api;
  const auto made = api.call("POST", "/v1/environments",
                             R"({"task_id":"t","spec":{"cpus":2},"unknown":1,
                                 "phases":{"run":{"script":"true"}}} trailing)",
                             {{"Prefer", "respond-async"}});
  CHECK(made.status == 201);
  CHECK(made.headers.get("Content-Type") == "application/json");
  const json environment = body_of(made);
  CHECK(environment["id"] == "fuse-t");
  CHECK(environment["state"] == "provisioning");
  CHECK(environment["spec"]["cpus"] == 2);
  CHECK(environment["url"] == "");
  CHECK(environment["job"]["state"] == "pending");
  CHECK_FALSE(environment.contains("error"));
}

TEST_CASE("a body that is none, and one that is too large, are refused") {
  Api api;
  const auto bad = api.call("POST", "/v1/environments", "{");
  CHECK(bad.status == 400);
  CHECK(body_of(bad)["error"]["code"] == "invalid_argument");
  CHECK(body_of(bad)["error"]["message"].get<std::string>().rfind("invalid JSON body: ", 0) == 0);
  CHECK(api.call("POST", "/v1/environments", "").status == 400);
  CHECK(api.call("POST", "/v1/environments", "[1]").status == 400);
  CHECK(api.call("POST", "/v1/environments", R"({"task_id":5,"spec":{}})").status == 400);
  const auto large = api.call("POST", "/v1/environments", std::string((1U << 20U) + 1, ' '));
  CHECK(large.status == 413);
  CHECK(body_of(large)["error"]["message"] ==
        "request body exceeds the 1048576 byte limit for this endpoint");
}

TEST_CASE("codes become statuses") {
  Api api;
  api.up("one");
  CHECK(api.call("GET", "/v1/environments/fuse-two").status == 404);
  CHECK(api.call("DELETE", "/v1/environments/fuse-two").status == 404);
  CHECK(api.call("POST", "/v1/environments", R"({"task_id":"one","spec":{}})").status == 409);
  const auto full = api.call("POST", "/v1/environments", R"({"task_id":"x","spec":{"cpus":999}})");
  CHECK(full.status == 503);
  CHECK(body_of(full)["error"]["details"]["reason"] == "placement");
  CHECK(api.call("POST", "/v1/environments",
                 R"({"task_id":"x","spec":{},"files":{"/a":")" +
                     base64_encode(std::string(524'289, 'x')) + R"("}})")
            .status == 413);
}

TEST_CASE("environments are listed, shown, used and removed") {
  Api api;
  api.up("one");
  CHECK(body_of(api.call("GET", "/v1/environments?limit=junk"))["environments"].size() == 1);
  CHECK(api.call("GET", "/v1/environments?task_id=no").body == "{\"environments\":[]}\n");
  CHECK(body_of(api.call("GET", "/v1/environments/fuse-one"))["state"] == "running");
  const auto ran =
      api.call("POST", "/v1/environments/fuse-one?action=exec", R"({"cmd":["echo","hi"]})");
  CHECK(ran.status == 200);
  CHECK(ran.body == "{\"exit_code\":0,\"stdout\":\"echo hi\",\"stderr\":\"\"}\n");
  // Nobody works on it meanwhile, so the answer is that it is not gone yet.
  CHECK(api.call("DELETE", "/v1/environments/fuse-one").status == 500);
  api.engine.run_until_idle();
  CHECK(api.call("GET", "/v1/environments/fuse-one").status == 404);
  CHECK(body_of(api.call("GET", "/v1/environments/fuse-one?include=ended"))["state"] ==
        "destroyed");
}

TEST_CASE("an exec outside of running is a conflict that names the state") {
  Api api;
  (void)api.engine.create({.task_id = "early"});
  const auto refused =
      api.call("POST", "/v1/environments/fuse-early?action=exec", R"({"shell":"true"})");
  CHECK(refused.status == 409);
  CHECK(body_of(refused)["error"]["message"] ==
        "vm not running: vm fuse-early is in state provisioning");
}

TEST_CASE("hosts are listed and shown with what is taken on them") {
  Api api;
  api.up("one");
  const json hosts = body_of(api.call("GET", "/v1/hosts"))["hosts"];
  REQUIRE(hosts.size() == 1);
  CHECK(hosts[0]["id"] == "local");
  CHECK(hosts[0]["state"] == "active");
  CHECK(hosts[0]["allocated"]["cpus"] == 1);
  CHECK(hosts[0]["allocated"]["vm_count"] == 1);
  CHECK(body_of(api.call("GET", "/v1/hosts/local"))["capacity"]["cpus"] == 8);
  CHECK(api.call("GET", "/v1/hosts/other").status == 404);
}

TEST_CASE("a gpu environment is never copied, and says so") {
  Api api;
  HostCapacity capacity{.cpus = 4, .ram_mb = 4096, .storage_gb = 50, .gpus = 1};
  capacity.gpu_devices = {{.uuid = "GPU-1", .model = "A100"}};
  api.engine.host.set_capacity(capacity);
  api.engine.poller.pass();
  auto request = CreateEnvironmentRequest{.task_id = "g"};
  request.spec.gpus = 1;
  (void)api.engine.create(request);
  CHECK(api.call("POST", "/v1/environments/fuse-g/snapshots").status == 409);
  api.engine.run_until_idle();
  CHECK(body_of(api.call("POST", "/v1/environments/fuse-g/snapshots"))["error"]["message"] ==
        "operation not supported for gpu environments: vm fuse-g has a gpu passthrough device: "
        "snapshots are not supported for gpu environments");
  CHECK(body_of(api.call("POST", "/v1/environments/fuse-g?action=fork"))["error"]["message"] ==
        "operation not supported for gpu environments: vm fuse-g has a gpu passthrough device: "
        "fork is not supported for gpu environments");
  api.up("plain");
  CHECK(api.call("POST", "/v1/environments/fuse-plain/snapshots").status == 501);
}

TEST_CASE("events are a stream of server-sent events that ends with the environment") {
  Api api;
  api.up("one");
  const auto response = api.call("GET", "/v1/environments/fuse-one/events");
  CHECK(response.status == 200);
  CHECK(response.headers.get("Content-Type") == "text/event-stream");
  CHECK(response.headers.get("Cache-Control") == "no-cache");
  CHECK(response.headers.get("X-Accel-Buffering") == "no");
  REQUIRE(response.stream != nullptr);
  Collected out;
  bool destroyed = false;
  // Once the state as it is has been seen, it changes.
  out.enough = [&](const std::string& text) {
    const bool seen = text.find("data: ") != std::string::npos;
    if (seen && !std::exchange(destroyed, true)) {
      (void)api.engine.service.destroy("fuse-one");
      api.engine.run_until_idle();
    }
    return false;
  };
  response.stream(out);
  std::vector<std::string> states;
  for (const std::string& line : split(out.text, '\n')) {
    if (line.rfind("data: ", 0) != 0) continue;
    states.push_back(must(parse_json(line.substr(6)))["state"].get<std::string>());
  }
  CHECK(states == std::vector<std::string>{"running", "destroying", "destroyed"});
  CHECK(out.text.find("id: ") < out.text.find("data: "));
  CHECK(out.text.find("event: ") == std::string::npos);
}

TEST_CASE("while nothing happens an event stream is kept alive") {
  Api api;
  api.up("quiet");
  const auto response = api.call("GET", "/v1/environments/fuse-quiet/events");
  Collected out;
  out.enough = [](const std::string& text) {
    const std::size_t event = text.find("data: ");
    return event != std::string::npos &&
           text.find(": keepalive\n\n: keepalive\n\n", event) != std::string::npos;
  };
  response.stream(out);
  CHECK(out.enough(out.text));
}

TEST_CASE("step events are in the stream, job events only where asked for") {
  Api api;
  api.engine.host.on_job = [](const JobSpec&) {
    return JobStatus{.state = JobState::exited, .phase = JobPhase::done, .exit_code = 0};
  };
  auto request = job_request("j");
  request.on_exit = OnExit::destroy;
  const Environment environment = api.engine.create(request);
  api.engine.run_for(std::chrono::seconds(2));
  const auto kinds = [&](const std::string& query) {
    std::set<std::string> out;
    Collected collected;
    api.call("GET", "/v1/environments/" + environment.uid + "/events" + query).stream(collected);
    for (const std::string& line : split(collected.text, '\n')) {
      if (line.rfind("data: ", 0) == 0) out.insert(must(parse_json(line.substr(6)))["event"]);
    }
    return out;
  };
  using Kinds = std::set<std::string>;
  CHECK(kinds("") == Kinds{"state", "step"});
  CHECK(kinds("?kinds=state") == Kinds{"state"});
  CHECK(kinds("?kinds=state,step,job") == Kinds{"state", "step", "job"});
  CHECK(api.call("GET", "/v1/environments/fuse-j/events").status == 404);
}

TEST_CASE("a log is raw bytes from an offset that the answer names") {
  Api api;
  const Environment environment = api.engine.create(job_request("l"));
  api.engine.run_until_idle();
  const std::string bytes("a\xff\0b\nlast\n", 10);
  api.engine.host.print(environment.uid, bytes);
  const auto read = [&](const std::string& query) {
    const auto response = api.call("GET", "/v1/environments/fuse-l/logs" + query);
    REQUIRE(response.status == 200);
    Collected out;
    response.stream(out);
    return std::make_pair(response.headers.get("X-Fuse-Log-Offset").value_or(""), out.text);
  };
  CHECK(read("") == std::make_pair(std::string("0"), bytes));
  CHECK(read("?offset=4") == std::make_pair(std::string("4"), bytes.substr(4)));
  CHECK(read("?tail=1") == std::make_pair(std::string("5"), std::string("last\n")));
  const auto bad = api.call("GET", "/v1/environments/fuse-l/logs?offset=-1");
  CHECK(bad.status == 400);
  CHECK(api.call("GET", "/v1/environments/fuse-x/logs").status == 404);
}

TEST_CASE("an attach is checked before the connection changes hands") {
  Api api;
  api.up("one");
  const HttpHeaders upgrade = {{"Upgrade", "FUSE-attach/1"}};
  const auto message = [](const HttpResponse& response) {
    return body_of(response)["error"]["message"].get<std::string>();
  };
  CHECK(message(api.call("GET", "/v1/environments/fuse-one/attach?tty=1")) ==
        "attach requires Upgrade: fuse-attach/1");
  CHECK(message(api.call("GET", "/v1/environments/fuse-one/attach", "", upgrade)) ==
        "attach requires tty=1; use ?action=exec for non-interactive commands");
  CHECK(api.call("GET", "/v1/environments/fuse-no/attach?tty=1", "", upgrade).status == 404);
  for (const auto* tty : {"1", "true", "0"}) {
    const auto open = api.call(
        "GET", cat("/v1/environments/fuse-one/attach?cmd=a&cmd=b+c&tty=", tty), "", upgrade);
    CHECK(open.status == 101);
    REQUIRE(open.upgrade.has_value());
    CHECK(open.upgrade->protocol == "fuse-attach/1");
  }
}

TEST_CASE("a job is stopped by an action") {
  Api api;
  const Environment environment = api.engine.create(job_request("s"));
  api.engine.run_until_idle();
  CHECK(api.call("POST", "/v1/environments/fuse-s?action=stop").status == 204);
  api.engine.run_for(std::chrono::seconds(1));
  CHECK(api.engine.get("fuse-s").job->reason == "stopped");
}

}  // namespace
}  // namespace fuse
