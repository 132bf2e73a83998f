#include "orchestrator/callers.h"

#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/text.h"
#include "orchestrator/http.h"
#include "orchestrator/http_routes.h"
#include "tests/orchestrator/engine.h"

namespace fuse {
namespace {

struct Guarded {
  Engine engine{};
  Callers callers;
  HttpHandler handler;

  explicit Guarded(CallerRules rules)
      : callers(*engine.store, engine.clock, std::move(rules)),
        handler(make_api_handler({.environments = engine.service,
                                  .hosts = engine.fleet,
                                  .callers = callers,
                                  .metrics = engine.metrics,
                                  .clock = engine.clock,
                                  .log = engine.log})) {}

  HttpResponse call(const std::string& method, const std::string& target,
                    const HttpHeaders& headers = {}, const std::string& body = "",
                    const std::string& ip = "10.0.0.1") {
    HttpRequest request = make_request(method, target, body, headers);
    request.peer.ip = ip;
    return handler(request);
  }
};

HttpHeaders with_token(const std::string& token) {
  return {{"Authorization", cat("Bearer ", token)}};
}

std::string code_of(const HttpResponse& response) {
  const auto body = parse_json(response.body);
  return body ? body->at("error").at("code").get<std::string>() : "";
}
std::string message_of(const HttpResponse& response) {
  const auto body = parse_json(response.body);
  return body ? body->at("error").at("message").get<std::string>() : "";
}

// A path that a route's pattern matches.
std::string target_of(const ApiRouteEntry& route) {
  std::string out;
  bool inside = false;
  for (const char c : route.pattern) {
    if (c == '{') out += 'x';
    inside = (inside || c == '{') && c != '}';
    if (!inside && c != '}') out += c;
  }
  return route.action.empty() ? out : cat(out, "?action=", route.action);
}

TEST_CASE("every route against every kind of caller") {
  Guarded api({.master_token = "the master"});
  const std::string key = must(api.callers.create_key("ci")).secret;
  int routes = 0;
  for (const auto& table : {service_routes(), sign_in_routes(), environment_routes(),
                            stream_routes(), host_routes(), key_routes()}) {
    for (const ApiRouteEntry& route : table) {
      ++routes;
      const std::string target = target_of(route);
      INFO(route.method << ' ' << target);
      const std::string method(route.method);
      const bool open = route.access == Access::open || route.access == Access::anonymous;
      const auto nobody = api.call(method, target);
      CHECK((nobody.status == 401) == (!open));
      if (!open) CHECK(message_of(nobody) == "missing or malformed credentials");
      const auto wrong = api.call(method, target, with_token("guess"));
      CHECK((wrong.status == 401) == (!open));
      const auto holder = api.call(method, target, with_token(key));
      CHECK((holder.status == 403) == (route.access == Access::master));
      if (route.access == Access::master) {
        CHECK(code_of(holder) == "unauthorized");
        CHECK(message_of(holder).find(" requires the master token") != std::string::npos);
      }
      const auto master = api.call(method, target, with_token("the master"));
      CHECK(master.status != 401);
      CHECK(master.status != 403);
    }
  }
  CHECK(routes > 25);
}

TEST_CASE("a malformed header is refused even with a good cookie") {
  Guarded api({.master_token = "m"});
  const auto in = api.call("POST", "/login", {}, R"({"token":"m"})");
  CHECK(in.status == 204);
  const std::string cookie = in.headers.get("Set-Cookie").value_or("");
  const std::string pair = cookie.substr(0, cookie.find(';'));
  CHECK(api.call("GET", "/v1/hosts", {{"Cookie", cat("a=b; ", pair)}}).status == 200);
  CHECK(api.call("GET", "/v1/hosts", {{"Cookie", pair}, {"Authorization", "bearer m"}}).status ==
        401);
  CHECK(api.call("GET", "/v1/hosts", {{"Authorization", "Bearer "}}).status == 401);
}

TEST_CASE("the cookie is a session, not the token, and ends") {
  Guarded api({.master_token = "m"});
  CHECK(api.call("POST", "/login", {}, R"({"token":"wrong"})").status == 401);
  const auto in = api.call("POST", "/login", {}, R"({"token":"m"})");
  const std::string cookie = in.headers.get("Set-Cookie").value_or("");
  CHECK(cookie.find("fuse_session=") == 0);
  CHECK(cookie.find("fuse_session=m;") == std::string::npos);
  for (const char* part : {"; Path=/", "; Max-Age=604800", "; HttpOnly", "; SameSite=Lax"}) {
    CHECK(cookie.find(part) != std::string::npos);
  }
  CHECK(cookie.find("Secure") == std::string::npos);
  const HttpHeaders headers = {{"Cookie", cookie.substr(0, cookie.find(';'))}};
  CHECK(api.call("GET", "/v1/hosts", headers).status == 200);

  SECTION("by signing out") {
    CHECK(api.call("POST", "/logout", headers).status == 204);
    CHECK(api.call("GET", "/v1/hosts", headers).status == 401);
  }
  SECTION("by time") {
    api.engine.clock.move(std::chrono::hours(24 * 7) + std::chrono::seconds(1));
    CHECK(api.call("GET", "/v1/hosts", headers).status == 401);
  }
  SECTION("by a new master token") {
    Callers others(*api.engine.store, api.engine.clock, {.master_token = "changed"});
    CHECK_FALSE(others.identify(make_request("GET", "/", "", headers)).has_value());
  }
}

TEST_CASE("a session of an api key is no more than the key, and ends with it") {
  Guarded api({.master_token = "m", .secure_cookies = true});
  const auto key = must(api.callers.create_key(""));
  const auto in = api.call("POST", "/login", {}, cat(R"({"token":")", key.secret, "\"}"));
  const std::string cookie = in.headers.get("Set-Cookie").value_or("");
  CHECK(cookie.find("; Secure") != std::string::npos);
  const HttpHeaders headers = {{"Cookie", cookie.substr(0, cookie.find(';'))}};
  CHECK(api.call("GET", "/v1/hosts", headers).status == 200);
  CHECK(api.call("POST", "/v1/hosts", headers, "{}").status == 403);
  must(api.callers.revoke_key(key.key.id));
  CHECK(api.call("GET", "/v1/hosts", headers).status == 401);
}

TEST_CASE("keys are shown once, listed without their secret and can be revoked twice") {
  Guarded api({.master_token = "m"});
  const auto made = api.call("POST", "/v1/api-keys", with_token("m"), R"({"label":"ci"})");
  CHECK(made.status == 201);
  const auto key = must(parse_json(made.body));
  const std::string secret = key.at("key");
  CHECK(secret.size() == std::string("fuse_sk_").size() + 43);
  CHECK(key.at("id").get<std::string>().size() == 19);
  api.engine.clock.move(std::chrono::seconds(1));
  CHECK(api.call("POST", "/v1/api-keys", with_token("m")).status == 201);
  CHECK(api.call("GET", "/v1/hosts", with_token(secret)).status == 200);

  const auto list = api.call("GET", "/v1/api-keys", with_token("m"));
  CHECK(list.body.find(secret) == std::string::npos);
  const auto keys = must(parse_json(list.body)).at("api_keys");
  REQUIRE(keys.size() == 2);
  CHECK(keys[1].at("label") == "ci");
  CHECK(keys[1].count("last_used_at") == 1);
  CHECK(keys[0].count("last_used_at") == 0);

  const std::string path = cat("/v1/api-keys/", key.at("id").get<std::string>());
  CHECK(api.call("DELETE", path, with_token("m")).status == 204);
  CHECK(api.call("DELETE", path, with_token("m")).status == 204);
  CHECK(api.call("DELETE", "/v1/api-keys/ak_0", with_token("m")).status == 404);
  CHECK(api.call("GET", "/v1/hosts", with_token(secret)).status == 401);
}

TEST_CASE("addresses outside the allowed ranges are refused before anything else") {
  CallerRules rules{.master_token = "m"};
  for (const char* range : {"10.0.0.0/8", "2001:db8::/33", "192.0.2.7"}) {
    rules.allowed.push_back(must(AddressRange::parse(range)));
  }
  Guarded api(std::move(rules));
  const auto from = [&](const std::string& ip) {
    return api.call("GET", "/v1/hosts", with_token("m"), "", ip);
  };
  CHECK(from("10.255.0.1").status == 200);
  CHECK(from("::ffff:10.0.0.9").status == 200);
  CHECK(from("2001:db8:7fff::1").status == 200);
  CHECK(from("192.0.2.7").status == 200);
  for (const char* ip : {"11.0.0.1", "2001:db8:8000::1", "192.0.2.8", "", "junk"}) {
    INFO(ip);
    CHECK(from(ip).status == 403);
    CHECK(code_of(from(ip)) == "forbidden");
    CHECK(message_of(from(ip)) == "source address not in allowlist");
  }
  CHECK(api.call("GET", "/health", {}, "", "11.0.0.1").status == 200);
  CHECK(api.call("GET", "/metrics", {}, "", "11.0.0.1").status == 200);
  CHECK(api.call("POST", "/login", {}, R"({"token":"m"})", "11.0.0.1").status == 403);
  for (const char* bad : {"", "10.0.0.0/33", "10.0.0/8", "10.0.0.0/", "::/129", "a/8"}) {
    INFO(bad);
    CHECK_FALSE(AddressRange::parse(bad).has_value());
  }
}

TEST_CASE("what is not there is said without asking who calls") {
  Guarded api({.master_token = "m"});
  CHECK(api.call("GET", "/v1/nothing").status == 404);
  CHECK(code_of(api.call("GET", "/v1/nothing")) == "route_not_found");
  CHECK(api.call("PUT", "/v1/hosts").status == 405);
  CHECK(api.call("POST", "/v1/hosts/a?action=explode").status == 401);
  CHECK(api.call("POST", "/v1/hosts/a?action=explode", with_token("m")).status == 400);
}

TEST_CASE("the metrics tell of requests, hosts and devices") {
  Guarded api({});
  HostCapacity capacity{.cpus = 4, .ram_mb = 4096, .storage_gb = 50, .gpus = 1};
  capacity.gpu_devices = {{.uuid = "GPU-1", .model = "A100"}};
  api.engine.host.set_capacity(capacity);
  api.engine.poller.pass();
  api.engine.reconciler.pass();
  CHECK(api.call("GET", "/v1/environments/none").status == 404);
  const auto answer = api.call("GET", "/metrics");
  for (const char* line :
       {"orchestrator_http_requests_total{route=\"/v1/environments/{vmId}\",method=\"GET\","
        "code=\"404\"} 1\n",
        "orchestrator_fleet_hosts{state=\"active\"} 1\n",
        "orchestrator_fleet_gpus{host=\"local\",kind=\"A100\",use=\"free\"} 1\n",
        "orchestrator_reconcile_cycles_total 1\n",
        "# TYPE orchestrator_http_request_duration_seconds histogram\n"}) {
    INFO(answer.body);
    CHECK(answer.body.find(line) != std::string::npos);
  }
}

}  // namespace
}  // namespace fuse
