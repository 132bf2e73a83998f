#include "remote/remote_host_agent.h"

#include <atomic>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/ids.h"
#include "base/text.h"
#include "orchestrator/api/json.h"
#include "tests/remote/server.h"

namespace fuse {
namespace {

const std::string uid = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

HttpResponse healthy() {
  return json_response(200, to_json(own_health("1.2.3")).dump());
}

// A server that has our agent's features, and otherwise answers as told.
HttpHandler with_health(HttpHandler rest) {
  return [rest = std::move(rest)](const HttpRequest& request) {
    return request.path == "/healthz" ? healthy() : rest(request);
  };
}

std::unique_ptr<RemoteHostAgent> connect(const std::string& url, Clock& clock,
                                         const RemoteHostOptions& options = {}) {
  auto made = connect_host_agent({.url = url, .token = "sesame"}, clock, options);
  if (!made) FAIL(made.error().message);
  return *std::move(made);
}

Error refusal(int status, const std::string& text) {
  SystemClock clock;
  TestServer server(with_health([&](const HttpRequest&) {
    HttpResponse response = text_response(status, text);
    response.headers.set("Location", "http://127.0.0.1:9/elsewhere");
    return response;
  }));
  const auto agent = connect(server.place(), clock);
  const auto vm = agent->interfaces().vms.get_vm("a");
  if (vm) FAIL("it was not refused");
  Error error = vm.error();
  if (const auto at = error.message.find(server.place()); at != std::string::npos) {
    error.message.replace(at, server.place().size(), "URL");
  }
  return error;
}

}  // namespace

TEST_CASE("a create goes to our agent with its uid, and what is not the wire's in headers") {
  SystemClock clock;
  TestServer server(with_health([](const HttpRequest&) {
    return json_response(200, R"({"vm_id":"fuse-a","url":"h:1","uid":"U","cluster":"c-1"})");
  }));
  const auto agent = connect(server.place(), clock);
  const auto vm = agent->interfaces().vms.create_vm({.name = "fuse-a",
                                                     .uid = uid,
                                                     .cpus = 2,
                                                     .gpus = 1,
                                                     .gpu_device_uuids = {"GPU-1"},
                                                     .idempotency_key = "op-1",
                                                     .cluster = "c-1"});
  REQUIRE(vm);
  CHECK(vm->cluster == "c-1");
  CHECK(vm->uid == "U");
  const auto requests = server.requests();
  REQUIRE(requests.size() == 2);
  CHECK(requests[1].headers.get("Authorization") == "Bearer sesame");
  CHECK(requests[1].headers.get("Idempotency-Key") == "op-1");
  CHECK(requests[1].headers.get("X-Fuse-Cluster") == "c-1");
  CHECK(nlohmann::json::parse(requests[1].body) ==
        nlohmann::json({{"name", "fuse-a"},
                        {"uid", uid},
                        {"cpus", 2},
                        {"region", ""},
                        {"gpus", 1},
                        {"gpu_device_uuids", {"GPU-1"}}}));
}

TEST_CASE("the refusals of an agent become errors, by its status and in its words") {
  for (const int status : {401, 403}) {
    const Error error = refusal(status, "unauthorized");
    CHECK(error.code == ErrorCode::unauthorized);
    CHECK(error.message == "host agent at URL rejected the token");
    CHECK(error.details.contains("hint"));
  }
  const Error gone = refusal(404, "vm not found");
  CHECK(gone.code == ErrorCode::not_found);
  CHECK(gone.message == "vm not found");
  const Error route = refusal(404, "not found");
  CHECK(route.code == ErrorCode::route_not_found);
  CHECK(route.message == "host agent at URL has no route GET /v1/vm/a");
  CHECK(refusal(409, "vm a already exists\n").message == "vm a already exists");
  CHECK(refusal(409, "x").code == ErrorCode::conflict);
  CHECK(refusal(400, "x").code == ErrorCode::invalid_argument);
  CHECK(refusal(413, "x").code == ErrorCode::payload_too_large);
  CHECK(refusal(500, "x").code == ErrorCode::internal);
  CHECK(refusal(501, "x").code == ErrorCode::unimplemented);
  CHECK(refusal(502, "x").code == ErrorCode::unreachable);
  CHECK(refusal(503, "x").code == ErrorCode::unavailable);
  CHECK(refusal(504, "x").code == ErrorCode::unavailable);
  CHECK(refusal(500, "").message == "host agent at URL answers HTTP 500");
  const Error moved = refusal(302, "");
  CHECK(moved.code == ErrorCode::internal);
  CHECK(moved.message ==
        "host agent at URL answers HTTP 302: redirects are not followed, register its final "
        "address");
  // However much an agent has to say, what is kept of it is bounded.
  CHECK(refusal(500, std::string(200'000, 'x')).message.size() == 64U << 10U);
}

TEST_CASE("an address with user info is none, and one that nobody answers is unreachable") {
  SystemClock clock;
  CHECK(connect_host_agent({.url = "http://me:secret@10.0.0.7:8091"}, clock).error().code ==
        ErrorCode::invalid_argument);
  CHECK(connect_host_agent({.url = "10.0.0.7:8091"}, clock).error().code ==
        ErrorCode::invalid_argument);
  std::string place;
  {
    const TestServer server([](const HttpRequest&) { return healthy(); });
    place = server.place();
  }
  const auto agent = connect(place, clock);
  const auto capacity = agent->interfaces().vms.capacity();
  REQUIRE_FALSE(capacity);
  CHECK(capacity.error().code == ErrorCode::unreachable);
  CHECK(capacity.error().message.find(place) != std::string::npos);
  CHECK(agent->health().error().code == ErrorCode::unreachable);
}

TEST_CASE("what an agent can do is asked once, on a connection that is kept") {
  SystemClock clock;
  std::mutex mutex;
  std::set<std::uint16_t> ports;
  TestServer server([&](const HttpRequest& request) {
    const std::scoped_lock lock(mutex);
    ports.insert(request.peer.port);
    if (request.path == "/healthz") return healthy();
    return json_response(200, R"({"vm_id":"a","url":""})");
  });
  const auto agent = connect(server.place(), clock);
  for (int i = 0; i < 3; ++i) REQUIRE(agent->interfaces().vms.get_vm(uid));
  CHECK(server.lines() == std::vector<std::string>{"GET /healthz", cat("GET /v1/vm/", uid),
                                                   cat("GET /v1/vm/", uid),
                                                   cat("GET /v1/vm/", uid)});
  CHECK(ports.size() == 1);
}

TEST_CASE("at most eight uploads are on their way at a time") {
  SystemClock clock;
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  std::atomic<int> done{0};
  TestServer server(with_health([&](const HttpRequest&) {
    const int here = ++now;
    int seen = most.load();
    while (here > seen && !most.compare_exchange_weak(seen, here)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    --now;
    ++done;
    return json_response(200, R"({"ok":true})");
  }));
  const auto agent = connect(server.place(), clock);
  {
    std::vector<std::jthread> uploads;
    for (int i = 0; i < 24; ++i) {
      uploads.emplace_back([&] {
        (void)agent->interfaces().guests.upload(uid, {.path = "/in", .bytes = "x", .mode = 0644});
      });
    }
  }
  CHECK(done == 24);
  CHECK(most <= 8);
  CHECK(most > 1);
  CHECK(nlohmann::json::parse(server.requests().back().body) ==
        nlohmann::json({{"path", "/in"}, {"content_b64", "eA=="}, {"mode", "0644"}}));
}

TEST_CASE("an exec is waited for as long as it may take, and its output is what it was") {
  SystemClock clock;
  TestServer server(with_health([](const HttpRequest&) {
    return json_response(200, R"({"exit_code":3,"stdout":"/wA=","stderr":""})");
  }));
  const auto agent = connect(server.place(), clock);
  const auto result = agent->interfaces().guests.exec(uid, {.shell = "x y", .timeout_ms = 5});
  REQUIRE(result);
  CHECK(result->exit_code == 3);
  CHECK(result->out == std::string("\xff\0", 2));
  CHECK(nlohmann::json::parse(server.requests().back().body) ==
        nlohmann::json({{"cmd", {"sh", "-lc", "x y"}}, {"timeout_ms", 5}}));
  CHECK(agent->interfaces().guests.exec(uid, {.cmd = {"a"}, .shell = "b"}).error().code ==
        ErrorCode::invalid_argument);
}

TEST_CASE("a log that breaks off goes on where it was, until its job is over") {
  SystemClock clock;
  const std::string whole = random_hex(3000);
  std::atomic<int> asked{0};
  TestServer server(with_health([&](const HttpRequest& request) {
    if (request.path.ends_with("/job")) {
      const bool over = asked > 3;
      return json_response(
          200, to_json(JobStatus{.state = over ? JobState::exited : JobState::running}).dump());
    }
    const auto offset = static_cast<std::size_t>(*parse_int(*request.query.get("offset")));
    ++asked;
    HttpResponse response;
    response.headers.set("X-Fuse-Log-Offset", cat(offset));
    // A different piece each time, and an agent that goes down with it.
    response.stream = [&, offset](HttpStream& out) {
      out.write(std::string_view(whole).substr(offset, 1700));
    };
    return response;
  }));
  const auto agent = connect(server.place(), clock);
  std::string got;
  const auto range =
      agent->interfaces().jobs.logs(uid, {.offset = 10, .follow = true},
                                    [&](std::string_view bytes) { return got += bytes, true; }, {});
  REQUIRE(range);
  CHECK(got == whole.substr(10));
  CHECK(range->begin == 10);
  CHECK(range->end == whole.size());
}

TEST_CASE("an agent that stays away ends a log with an error, after some patience") {
  SystemClock clock;
  TestServer server(with_health([&](const HttpRequest&) { return text_response(503, "busy"); }));
  const auto agent = connect(server.place(), clock, {.log_patience = std::chrono::milliseconds(1)});
  const auto range = agent->interfaces().jobs.logs(uid, {.follow = true},
                                                   [](std::string_view) { return true; }, {});
  REQUIRE_FALSE(range);
  CHECK(range.error().message == "busy");
}

}  // namespace fuse
