#include "remote/remote_environments.h"

#include <nlohmann/json.hpp>

#include "net/attach_frames.h"
#include "net/attach_session.h"
#include "orchestrator/api/json.h"
#include "tests/remote/server.h"

namespace fuse {

namespace {

HttpResponse environment_response(int status) {
  const Environment environment{.id = "fuse-train",
                                .uid = "01ARZ",
                                .state = EnvironmentState::running,
                                .task_id = "train",
                                .created_at = "2026-11-30T10:00:00Z",
                                .updated_at = "2026-11-30T10:00:01Z"};
  return json_response(status, to_json(environment).dump());
}

}  // namespace

TEST_CASE("a create is sent as the wire has it, and may ask not to be waited for") {
  TestServer server([](const HttpRequest&) { return environment_response(201); });
  const auto client = server.client({}, "sesame");
  const CreateEnvironmentRequest request{
      .task_id = "train", .spec = {.cpus = 2}, .secrets = {{"TOKEN", "s3cret"}}};

  const auto waited = client->create(request, {});
  const auto placed = client->create(request, {.respond_async = true});

  REQUIRE(waited);
  CHECK(waited->uid == "01ARZ");
  CHECK(waited->state == EnvironmentState::running);
  REQUIRE(placed);
  const auto requests = server.requests();
  CHECK(server.lines() ==
        std::vector<std::string>{"POST /v1/environments", "POST /v1/environments"});
  CHECK(nlohmann::json::parse(requests[0].body) == nlohmann::json(to_json(request)));
  CHECK(requests[0].headers.get("Authorization") == "Bearer sesame");
  CHECK(requests[0].headers.get("Content-Type") == "application/json");
  CHECK_FALSE(requests[0].headers.has("Prefer"));
  CHECK(requests[1].headers.get("Prefer") == "respond-async");
}

TEST_CASE("filters of a list become a query, and ids are quoted in paths") {
  TestServer server([](const HttpRequest& request) {
    if (request.path == "/v1/environments") {
      return json_response(200, R"({"environments":[],"next_cursor":"abc"})");
    }
    return environment_response(200);
  });
  const auto client = server.client();

  const auto page = client->list({.task_id = "a b",
                                  .state = "running",
                                  .host_id = "gpu/1",
                                  .include_ended = true,
                                  .limit = 7,
                                  .cursor = "x+y"});
  REQUIRE(client->list({}));
  REQUIRE(client->get("fuse-a/b", false));
  REQUIRE(client->get("fuse-a", true));

  REQUIRE(page);
  CHECK(page->next_cursor == "abc");
  CHECK(server.lines() ==
        std::vector<std::string>{"GET /v1/environments?task_id=a%20b&state=running&host_id=gpu%2F1"
                                 "&include=ended&limit=7&cursor=x%2By",
                                 "GET /v1/environments", "GET /v1/environments/fuse-a%2Fb",
                                 "GET /v1/environments/fuse-a?include=ended"});
}

TEST_CASE("destroy, stop and exec use the routes of the wire") {
  TestServer server([](const HttpRequest& request) {
    if (request.method == "DELETE") return HttpResponse{.status = 204};
    if (request.query.get("action") == "stop") return json_response(202, "{}");
    return json_response(200, R"({"exit_code":3,"stdout":"out\n","stderr":"err\n"})");
  });
  const auto client = server.client();

  CHECK(client->destroy("fuse-a"));
  CHECK(client->stop_job("fuse-a"));
  const auto result = client->exec("fuse-a", {.cmd = {"ls", "-l"}, .timeout_ms = 5000});

  REQUIRE(result);
  CHECK(result->exit_code == 3);
  CHECK(result->out == "out\n");
  CHECK(result->err == "err\n");
  CHECK(server.lines() == std::vector<std::string>{"DELETE /v1/environments/fuse-a",
                                                   "POST /v1/environments/fuse-a?action=stop",
                                                   "POST /v1/environments/fuse-a?action=exec"});
  CHECK(nlohmann::json::parse(server.requests()[2].body) ==
        nlohmann::json({{"cmd", {"ls", "-l"}}, {"timeout_ms", 5000}}));
}

TEST_CASE("an error answer becomes the error that it carries") {
  TestServer server([](const HttpRequest&) {
    return error_response(Error{ErrorCode::unavailable,
                                "no host has sufficient capacity: need 1 gpu",
                                {{"reason", "placement"}}});
  });
  const auto created = server.client()->create({.task_id = "a"}, {});
  REQUIRE_FALSE(created);
  CHECK(created.error().code == ErrorCode::unavailable);
  CHECK(created.error().message == "no host has sufficient capacity: need 1 gpu");
  CHECK(created.error().details == std::map<std::string, std::string>{{"reason", "placement"}});
}

TEST_CASE("an answer that is no environment names the server that gave it") {
  TestServer server([](const HttpRequest&) { return json_response(200, R"({"id": 7})"); });
  const auto got = server.client()->get("fuse-a", false);
  REQUIRE_FALSE(got);
  CHECK(got.error().code == ErrorCode::internal);
  CHECK(got.error().message.find(server.place() + " gave an answer that is not understood: ") == 0);
}

TEST_CASE("a server that is not there is unreachable, by its name") {
  std::string place;
  SystemClock clock;
  {
    TestServer server([](const HttpRequest&) { return HttpResponse{}; });
    place = server.place();
  }
  auto http = make_http_client({.base_url = place});
  REQUIRE(http);
  RemoteEnvironments client(std::move(*http), clock);
  const auto got = client.get("fuse-a", false);
  REQUIRE_FALSE(got);
  CHECK(got.error().code == ErrorCode::unreachable);
  CHECK(got.error().message.find(place) != std::string::npos);
}

TEST_CASE("a look at a server that has gone brings it back and looks again") {
  SystemClock clock;
  NullLog log;
  std::string place;
  {
    TestServer gone([](const HttpRequest&) { return HttpResponse{}; });
    place = gone.place();
  }
  const auto port = static_cast<std::uint16_t>(std::stoi(place.substr(place.rfind(':') + 1)));
  std::unique_ptr<HttpServer> server;
  int revivals = 0;
  auto http = make_http_client({.base_url = place});
  REQUIRE(http);
  RemoteEnvironments client(std::move(*http), clock, {.revive = [&]() -> Result<void> {
                              ++revivals;
                              auto started = HttpServer::listen(
                                  TcpEndpoint{.port = port}, {},
                                  [](const HttpRequest&) { return environment_response(200); },
                                  log);
                              if (!started) return started.error();
                              server = std::move(*started);
                              return {};
                            }});
  const auto got = client.get("fuse-train", false);
  REQUIRE(got);
  CHECK(got->id == "fuse-train");
  CHECK(revivals == 1);
  // A create is not made twice: nobody knows whether the first one arrived.
  server.reset();
  CHECK_FALSE(client.create({.task_id = "a"}, {}));
  CHECK(revivals == 1);
}

TEST_CASE("a session carries frames both ways and ends with the exit code") {
  TestServer server([](const HttpRequest&) {
    HttpResponse response;
    response.upgrade = HttpResponse::Upgrade{
        std::string(attach_protocol), [](ByteStream& connection) {
          std::array<char, 256> buffer{};
          AttachDecoder decoder;
          std::string said;
          while (said != "hello") {
            const auto got = connection.read(buffer, std::nullopt);
            if (!got || got->kind != ReadOutcome::Kind::bytes) return;
            decoder.feed({buffer.data(), got->size});
            while (const auto frame = *decoder.next()) said += frame->payload;
          }
          (void)connection.write(
              encode_attach_frame({.type = AttachFrameType::stdout_bytes, .payload = said}));
          (void)connection.write(
              encode_attach_frame({.type = AttachFrameType::exit, .payload = encode_exit(7)}));
        }};
    return response;
  });
  const auto session = server.client()->attach(
      "fuse-a", {.cmd = {"sh", "-c", "a b"}, .tty = true, .rows = 24, .cols = 80});
  REQUIRE(session);
  REQUIRE((*session)->write({.type = AttachFrameType::stdin_bytes, .payload = "hel"}));
  REQUIRE((*session)->write({.type = AttachFrameType::stdin_bytes, .payload = "lo"}));
  const auto output = (*session)->read();
  const auto end = (*session)->read();

  REQUIRE(output);
  REQUIRE(*output);
  CHECK((*output)->type == AttachFrameType::stdout_bytes);
  CHECK((*output)->payload == "hello");
  REQUIRE(end);
  REQUIRE(*end);
  CHECK(parse_exit((*end)->payload) == 7);
  const HttpRequest request = server.requests().front();
  CHECK(request.path == "/v1/environments/fuse-a/attach");
  CHECK(request.query.all("cmd") == std::vector<std::string>{"sh", "-c", "a b"});
  CHECK(request.query.get("tty") == "1");
  CHECK(request.query.get("rows") == "24");
}

TEST_CASE("a refused session gives the server's reason") {
  TestServer server([](const HttpRequest&) {
    return error_response(Error{ErrorCode::conflict, "vm not running: vm a is in state draining"});
  });
  const auto session = server.client()->attach("fuse-a", {});
  REQUIRE_FALSE(session);
  CHECK(session.error().code == ErrorCode::conflict);
  CHECK(session.error().message == "vm not running: vm a is in state draining");
}

}  // namespace fuse
