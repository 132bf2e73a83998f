#include <atomic>
#include <nlohmann/json.hpp>

#include "net/sse.h"
#include "orchestrator/api/json.h"
#include "tests/remote/server.h"

namespace fuse {

namespace {

std::string sse(const std::string& id, EnvironmentState state) {
  EnvironmentEvent event{.id = id, .vm_id = "fuse-a", .state = state, .updated_at = "t"};
  return encode_sse({.id = id, .data = to_json(event).dump()});
}

HttpResponse stream_response(std::string type, std::function<void(HttpStream&)> body) {
  HttpResponse response;
  response.headers.set("Content-Type", std::move(type));
  response.stream = std::move(body);
  return response;
}

HttpResponse job_response(JobState state, std::uint64_t log_bytes) {
  const Environment environment{.id = "fuse-a",
                                .state = EnvironmentState::running,
                                .task_id = "a",
                                .job = JobStatus{.state = state, .log_bytes = log_bytes}};
  return json_response(200, to_json(environment).dump());
}

// Collects a stream.
struct Collected {
  std::string bytes{};
  ByteSink sink() {
    return [this](std::string_view more) {
      bytes += more;
      return true;
    };
  }
};

}  // namespace

TEST_CASE("events go on after the last one seen when their connection ends") {
  std::atomic<int> connection{0};
  TestServer server([&](const HttpRequest&) {
    const int number = connection++;
    return stream_response("text/event-stream", [number](HttpStream& out) {
      if (number == 0) {
        out.write(sse("e1", EnvironmentState::provisioning) + "id: e2\ndata: {\"half");
      } else {
        out.write(sse("e2", EnvironmentState::running));
        out.write(sse("e3", EnvironmentState::destroyed));
        out.write(sse("e4", EnvironmentState::destroyed));
      }
    });
  });
  std::vector<std::string> ids;
  const auto done = server.client()->events("fuse-a", {.all_kinds = true},
                                            [&ids](const EnvironmentEvent& event) {
                                              ids.push_back(event.id);
                                              return true;
                                            },
                                            {});

  REQUIRE(done);
  CHECK(ids == std::vector<std::string>{"e1", "e2", "e3"});
  const auto requests = server.requests();
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].target == "/v1/environments/fuse-a/events?kinds=state,step,job");
  CHECK_FALSE(requests[0].headers.has("Last-Event-ID"));
  CHECK(requests[1].headers.get("Last-Event-ID") == "e1");
}

TEST_CASE("the sink ends events by saying false") {
  TestServer server([](const HttpRequest&) {
    return stream_response("text/event-stream", [](HttpStream& out) {
      out.write(sse("e1", EnvironmentState::provisioning));
      out.write(sse("e2", EnvironmentState::running));
    });
  });
  int seen = 0;
  const auto done =
      server.client()->events("fuse-a", {.last_event_id = "e0"},
                              [&seen](const EnvironmentEvent&) { return ++seen < 1; }, {});
  CHECK(done);
  CHECK(seen == 1);
  CHECK(server.requests().front().headers.get("Last-Event-ID") == "e0");
  CHECK(server.lines() == std::vector<std::string>{"GET /v1/environments/fuse-a/events"});
}

TEST_CASE("events of an environment that is not known are an error at once") {
  TestServer server([](const HttpRequest&) {
    return error_response(Error{ErrorCode::not_found, "vm not found: vm fuse-a"});
  });
  const auto done =
      server.client()->events("fuse-a", {}, [](const EnvironmentEvent&) { return true; }, {});
  REQUIRE_FALSE(done);
  CHECK(done.error().code == ErrorCode::not_found);
  CHECK(server.requests().size() == 1);
}

TEST_CASE("events end without an error when the environment went while we were away") {
  std::atomic<int> connection{0};
  TestServer server([&](const HttpRequest&) {
    if (connection++ > 0) return error_response(Error{ErrorCode::not_found, "vm not found"});
    return stream_response("text/event-stream", [](HttpStream& out) {
      out.write(sse("e1", EnvironmentState::running));
    });
  });
  CHECK(server.client()->events("fuse-a", {}, [](const EnvironmentEvent&) { return true; }, {}));
}

TEST_CASE("an event that is no JSON is an error, not a reason to ask for ever") {
  TestServer server([](const HttpRequest&) {
    return stream_response("text/event-stream",
                           [](HttpStream& out) { out.write("id: 1\ndata: {nonsense\n\n"); });
  });
  const auto done =
      server.client()->events("fuse-a", {}, [](const EnvironmentEvent&) { return true; }, {});
  REQUIRE_FALSE(done);
  CHECK(done.error().code == ErrorCode::internal);
}

TEST_CASE("a log that is followed goes on at the next byte, until the job has ended") {
  const std::string all = "one\ntwo\nthree\n";
  std::atomic<int> connection{0};
  TestServer server([&](const HttpRequest& request) {
    // The first connection ends early, as when a server goes down.
    if (request.path == "/v1/environments/fuse-a") {
      return connection == 1 ? job_response(JobState::running, 0)
                             : job_response(JobState::exited, all.size());
    }
    const auto offset = static_cast<std::size_t>(std::stoi(request.query.get("offset").value()));
    const std::size_t size = connection++ == 0 ? 5 : std::string::npos;
    return stream_response("application/octet-stream",
                           [text = all.substr(offset, size)](HttpStream& out) { out.write(text); });
  });
  Collected collected;
  const auto read =
      server.client()->logs("fuse-a", {.offset = 2, .follow = true}, collected.sink(), {});

  REQUIRE(read);
  CHECK(collected.bytes == all.substr(2));
  CHECK(read->begin == 2);
  CHECK(read->end == all.size());
  CHECK(server.lines() ==
        std::vector<std::string>{"GET /v1/environments/fuse-a/logs?offset=2&follow=1",
                                 "GET /v1/environments/fuse-a?include=ended",
                                 "GET /v1/environments/fuse-a/logs?offset=7&follow=1",
                                 "GET /v1/environments/fuse-a?include=ended",
                                 "GET /v1/environments/fuse-a/logs?offset=14&follow=1"});
}

TEST_CASE("the last lines of a log say where they begin") {
  TestServer server([](const HttpRequest&) {
    HttpResponse response =
        stream_response("application/octet-stream", [](HttpStream& out) { out.write("last\n"); });
    response.headers.set("X-Fuse-Log-Offset", "95");
    return response;
  });
  Collected collected;
  const auto read = server.client()->logs("fuse-a", {.tail = 1}, collected.sink(), {});
  REQUIRE(read);
  CHECK(collected.bytes == "last\n");
  CHECK(read->begin == 95);
  CHECK(read->end == 100);
  CHECK(server.lines() == std::vector<std::string>{"GET /v1/environments/fuse-a/logs?tail=1"});
}

TEST_CASE("a log ends where its sink says false") {
  TestServer server([](const HttpRequest&) {
    return stream_response("application/octet-stream", [](HttpStream& out) {
      while (out.write("x")) {
      }
    });
  });
  const auto read =
      server.client()->logs("fuse-a", {.follow = true}, [](std::string_view) { return false; }, {});
  REQUIRE(read);
  CHECK(read->begin == 0);
  CHECK(server.requests().size() == 1);
}

TEST_CASE("a log is read on through a server that starts again") {
  std::atomic<int> answers{0};
  TestServer server([&](const HttpRequest&) {
    if (answers++ < 2) return error_response(Error{ErrorCode::unavailable, "going down"});
    return stream_response("application/octet-stream", [](HttpStream& out) { out.write("all"); });
  });
  int revivals = 0;
  Collected collected;
  const auto read = server
                        .client({.revive = [&revivals]() -> Result<void> {
                          ++revivals;
                          return {};
                        }})
                        ->logs("fuse-a", {}, collected.sink(), {});
  REQUIRE(read);
  CHECK(collected.bytes == "all");
  CHECK(revivals == 2);
}

TEST_CASE("a log that broke off says where it goes on, and what of it is gone by then") {
  std::atomic<int> connection{0};
  TestServer server([&](const HttpRequest& request) {
    if (request.path == "/v1/environments/fuse-a") {
      return connection < 2 ? job_response(JobState::running, 0)
                            : job_response(JobState::exited, 104);
    }
    const int number = connection++;
    HttpResponse response = stream_response("application/octet-stream", [number](HttpStream& out) {
      out.write(number < 2 ? "1234" : "");
    });
    // What was between the two was pruned in the meantime.
    if (number == 1) response.headers.set("X-Fuse-Log-Offset", "100");
    return response;
  });
  std::vector<std::string> news;
  Collected collected;
  const auto read =
      server
          .client({.log_news = [&news](const std::string& line) { news.push_back(line); },
                   .short_break = std::chrono::milliseconds(0)})
          ->logs("fuse-a", {.follow = true}, collected.sink(), {});
  REQUIRE(read);
  CHECK(collected.bytes == "12341234");
  CHECK(read->begin == 0);
  CHECK(read->end == 104);
  REQUIRE(news.size() == 2);
  CHECK(news[0].starts_with("the connection was lost for "));
  CHECK(news[0].ends_with("; the output goes on at byte 4"));
  CHECK(news[1] == "bytes 4 to 100 of the output were missed: they are not kept any more");
  CHECK(server.lines().back() == "GET /v1/environments/fuse-a/logs?offset=104&follow=1");
}

TEST_CASE("a log whose breaks are short says nothing of them") {
  std::atomic<int> answers{0};
  TestServer server([&](const HttpRequest&) {
    if (answers++ < 1) return error_response(Error{ErrorCode::unavailable, "going down"});
    return stream_response("application/octet-stream", [](HttpStream& out) { out.write("all"); });
  });
  std::vector<std::string> news;
  Collected collected;
  CHECK(server.client({.log_news = [&news](const std::string& line) { news.push_back(line); }})
            ->logs("fuse-a", {}, collected.sink(), {}));
  CHECK(collected.bytes == "all");
  CHECK(news.empty());
}

TEST_CASE("a log that cannot be had is an error at once") {
  TestServer server([](const HttpRequest&) {
    return error_response(Error{ErrorCode::not_found, "vm fuse-a has no job"});
  });
  Collected collected;
  const auto read = server.client()->logs("fuse-a", {.follow = true}, collected.sink(), {});
  REQUIRE_FALSE(read);
  CHECK(read.error().message == "vm fuse-a has no job");
}

TEST_CASE("a stop request ends a log that says nothing") {
  std::stop_source stop;
  TestServer server([&](const HttpRequest&) {
    return stream_response("application/octet-stream", [&](HttpStream& out) {
      out.write("first");
      while (!out.stop().stop_requested())
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
  });
  Collected collected;
  const auto read = server.client()->logs(
      "fuse-a", {.follow = true},
      [&](std::string_view bytes) {
        collected.bytes += bytes;
        stop.request_stop();
        return true;
      },
      stop.get_token());
  REQUIRE(read);
  CHECK(read->end == 5);
}

}  // namespace fuse
