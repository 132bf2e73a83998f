#include "tests/contract/environment_api_suite.h"

#include <atomic>
#include <thread>

#include "base/text.h"
#include "net/attach_frames.h"
#include "tests/catch.h"

namespace fuse {

namespace {

CreateEnvironmentRequest plain(const std::string& task) {
  return {.task_id = task};
}

CreateEnvironmentRequest with_job(const std::string& task) {
  CreateEnvironmentRequest request{.task_id = task};
  request.phases = Phases{.build = {}, .run = "true", .workdir = ""};
  request.settle_seconds = 0;
  return request;
}

JobStatus exited(int code) {
  return {.state = JobState::exited,
          .phase = JobPhase::done,
          .exit_code = code,
          .reason = "exited",
          .log_bytes = 0};
}

template <class T>
T value(Result<T> result) {
  if (!result) FAIL(result.error().message);
  return *std::move(result);
}

template <class T>
Error refusal(const Result<T>& result) {
  if (result) FAIL("it was not refused");
  return result.error();
}

// Reads an environment's events until its end.
std::vector<EnvironmentEvent> all_events(EnvironmentApi& api, const std::string& id,
                                         const EventQuery& query) {
  std::vector<EnvironmentEvent> out;
  const auto done = api.events(id, query,
                               [&](const EnvironmentEvent& event) {
                                 out.push_back(event);
                                 return true;
                               },
                               {});
  if (!done) FAIL(done.error().message);
  return out;
}

void create_get_list_destroy(EnvironmentWorld& world) {
  EnvironmentApi& api = world.api();
  auto request = plain("one");
  request.expose = {{.port = 80, .as = "http"}};
  const Environment made = value(api.create(request, {}));
  CHECK(made.id == "fuse-one");
  CHECK(made.state == EnvironmentState::running);
  CHECK(made.task_id == "one");
  CHECK(made.host_id == "local");
  CHECK(made.spec.cpus == 1);
  CHECK(made.endpoints.size() == 1);
  CHECK(made.uid.size() == 26);
  CHECK(value(api.get("fuse-one", false)).uid == made.uid);
  CHECK(value(api.get(made.uid, false)).id == "fuse-one");
  CHECK(value(api.list({})).environments.size() == 1);
  CHECK(api.destroy("fuse-one").has_value());
  CHECK(refusal(api.get("fuse-one", false)).code == ErrorCode::not_found);
  const auto again = api.destroy("fuse-one");
  REQUIRE_FALSE(again.has_value());
  CHECK(again.error().code == ErrorCode::not_found);
  CHECK(value(api.list({})).environments.empty());
  CHECK(value(api.get("fuse-one", true)).state == EnvironmentState::destroyed);
  CHECK(value(api.list({.include_ended = true})).environments.size() == 1);
  CHECK(world.host().vms().empty());
  const Environment next = value(api.create(plain("one"), {}));
  CHECK(next.uid != made.uid);
  CHECK(value(api.get("fuse-one", true)).uid == next.uid);
}

void refusals(EnvironmentWorld& world) {
  EnvironmentApi& api = world.api();
  CHECK(refusal(api.create({}, {})).message == "task_id is required");
  CHECK(refusal(api.create({}, {})).code == ErrorCode::invalid_argument);
  (void)value(api.create(plain("one"), {}));
  const Error twice = refusal(api.create(plain("one"), {}));
  CHECK(twice.code == ErrorCode::conflict);
  CHECK(twice.message == "task already assigned: task one already assigned to vm fuse-one");
  auto large = plain("large");
  large.spec.cpus = 10'000;
  const Error placement = refusal(api.create(large, {}));
  CHECK(placement.code == ErrorCode::unavailable);
  CHECK(placement.details.at("reason") == "placement");
  CHECK(placement.details.at("host.local") == "cpu: has 7 of 10000 cpus free");
  CHECK(refusal(api.list({.cursor = "?"})).message == "invalid pagination cursor");
  CHECK(refusal(api.get("fuse-nobody", true)).code == ErrorCode::not_found);
  CHECK(refusal(api.exec("fuse-nobody", {.cmd = {"a"}})).code == ErrorCode::not_found);
}

void paging(EnvironmentWorld& world) {
  EnvironmentApi& api = world.api();
  for (const auto* task : {"c", "a", "b"}) (void)value(api.create(plain(task), {}));
  const EnvironmentPage first = value(api.list({.limit = 2}));
  REQUIRE(first.environments.size() == 2);
  CHECK(first.environments[0].id == "fuse-a");
  CHECK(first.environments[1].id == "fuse-b");
  const EnvironmentPage rest = value(api.list({.limit = 2, .cursor = first.next_cursor}));
  REQUIRE(rest.environments.size() == 1);
  CHECK(rest.environments[0].id == "fuse-c");
  CHECK(rest.next_cursor.empty());
  CHECK(value(api.list({.limit = 3})).next_cursor.empty());
  CHECK(value(api.list({.task_id = "b"})).environments.size() == 1);
  CHECK(value(api.list({.state = "nonsense"})).environments.empty());
  CHECK(value(api.list({.host_id = "local"})).environments.size() == 3);
}

void a_failed_create(EnvironmentWorld& world) {
  EnvironmentApi& api = world.api();
  world.host().on_exec = [](const ExecRequest&) { return ExecResult{.exit_code = 1}; };
  auto request = plain("bad");
  request.startup_script = "exit 1";
  const Error error = refusal(api.create(request, {}));
  CHECK(error.code == ErrorCode::internal);
  CHECK(error.message == "provision vm fuse-bad: startup script: exec exit 1");
  CHECK(refusal(api.get("fuse-bad", false)).code == ErrorCode::not_found);
  CHECK(world.host().vms().empty());
}

void exec_and_attach(EnvironmentWorld& world) {
  EnvironmentApi& api = world.api();
  (void)value(api.create(plain("one"), {}));
  world.host().on_exec = [](const ExecRequest& request) {
    return ExecResult{.exit_code = 3, .out = join(request.cmd, " "), .err = "e"};
  };
  const ExecResult result = value(api.exec("fuse-one", {.shell = "a | b"}));
  CHECK(result.exit_code == 3);
  CHECK(result.out == "sh -lc a | b");
  CHECK(result.err == "e");
  CHECK(refusal(api.exec("fuse-one", {})).message == "one of cmd or shell is required");
  for (const bool tty : {true, false}) {
    const auto session = value(api.attach("fuse-one", {.cmd = {"cat"}, .tty = tty}));
    CHECK(session->write({AttachFrameType::stdin_bytes, "hello"}).has_value());
    const auto echo = value(session->read());
    REQUIRE(echo.has_value());
    CHECK(echo->payload == "hello");
    CHECK(session->write({AttachFrameType::stdin_bytes, ""}).has_value());
    const auto end = value(session->read());
    REQUIRE(end.has_value());
    CHECK(end->type == AttachFrameType::exit);
    CHECK(parse_exit(end->payload) == 5);
    CHECK_FALSE(value(session->read()).has_value());
  }
}

void a_job(EnvironmentWorld& world) {
  EnvironmentApi& api = world.api();
  const Environment made = value(api.create(with_job("job"), {}));
  CHECK(made.state == EnvironmentState::running);
  REQUIRE(made.job.has_value());
  CHECK(made.job->state == JobState::running);
  world.host().print(made.uid, "one\ntwo\nthree\n");
  std::string text;
  const auto append = [&](std::string_view bytes) {
    text += bytes;
    return true;
  };
  const LogRange part = value(api.logs("fuse-job", {.offset = 4}, append, {}));
  CHECK(text == "two\nthree\n");
  CHECK(part.begin == 4);
  CHECK(part.end == 14);
  text.clear();
  const LogRange tail = value(api.logs("fuse-job", {.tail = 1}, append, {}));
  CHECK(text == "three\n");
  CHECK(tail.begin == 8);

  text.clear();
  std::thread later([&] {
    world.host().print(made.uid, "four\n");
    world.host().set_job(made.uid, exited(0));
  });
  (void)value(api.logs("fuse-job", {.follow = true}, append, {}));
  later.join();
  CHECK(text == "one\ntwo\nthree\nfour\n");
  CHECK(api.destroy("fuse-job").has_value());
  text.clear();
  (void)value(api.logs(made.uid, {}, append, {}));
  CHECK(text == "one\ntwo\nthree\nfour\n");
  CHECK(value(api.get(made.uid, true)).job->exit_code == 0);
}

void stopping_a_job(EnvironmentWorld& world) {
  EnvironmentApi& api = world.api();
  auto request = with_job("job");
  request.on_exit = OnExit::destroy;
  const Environment made = value(api.create(request, {}));
  CHECK(api.stop_job("fuse-job").has_value());
  const auto events = all_events(api, made.uid, {.all_kinds = true});
  REQUIRE_FALSE(events.empty());
  CHECK(events.back().state == EnvironmentState::destroyed);
  CHECK(value(api.get(made.uid, true)).job->reason == "stopped");
  (void)value(api.create(plain("none"), {}));
  const auto without = api.stop_job("fuse-none");
  REQUIRE_FALSE(without.has_value());
  CHECK(without.error().code == ErrorCode::conflict);
}

// Nothing new begins in it; its job and its end are as ever.
void draining(EnvironmentWorld& world) {
  EnvironmentApi& api = world.api();
  auto wanted = with_job("job");
  wanted.on_exit = OnExit::destroy;
  const Environment made = value(api.create(wanted, {}));
  std::vector<std::string> asked;
  world.host().on_exec = [&](const ExecRequest& request) {
    asked = request.cmd;
    return ExecResult{};
  };
  CHECK(value(api.drain("fuse-job")).state == EnvironmentState::draining);
  REQUIRE(asked.size() == 3);
  CHECK(asked[2].starts_with("systemctl stop fused 2>/dev/null || pkill -TERM fused"));
  CHECK(value(api.get("fuse-job", false)).state == EnvironmentState::draining);
  const auto refused = api.exec("fuse-job", {.cmd = {"true"}});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::conflict);
  CHECK(refused.error().message == "vm not running: vm fuse-job is in state draining");
  CHECK(api.drain("fuse-job").error().code == ErrorCode::conflict);
  world.host().set_job(made.uid, exited(4));
  const auto events = all_events(api, made.uid, {});
  REQUIRE_FALSE(events.empty());
  CHECK(events.back().state == EnvironmentState::destroyed);
  CHECK(value(api.get(made.uid, true)).job->exit_code == 4);

  // A guest that cannot be told is draining all the same.
  (void)value(api.create(plain("deaf"), {}));
  world.host().on_exec = [](const ExecRequest&) { return ExecResult{.exit_code = 1}; };
  const auto failed = api.drain("fuse-deaf");
  REQUIRE_FALSE(failed.has_value());
  CHECK(failed.error().code == ErrorCode::internal);
  CHECK(value(api.get("fuse-deaf", false)).state == EnvironmentState::draining);
  CHECK(api.drain("fuse-none").error().code == ErrorCode::not_found);
}

// A job that is over when the create answers is complete in the answer.
void a_short_job(EnvironmentWorld& world) {
  world.host().on_job = [](const JobSpec&) { return exited(9); };
  auto request = with_job("short");
  request.settle_seconds = 600;
  const Environment made = value(world.api().create(request, {}));
  CHECK(made.job->state == JobState::exited);
  CHECK(made.job->exit_code == 9);
}

void events(EnvironmentWorld& world) {
  EnvironmentApi& api = world.api();
  world.host().on_job = [](const JobSpec&) { return exited(0); };
  const Environment made = value(api.create(with_job("e"), {}));
  CHECK(api.destroy("fuse-e").has_value());
  const auto everything = all_events(api, made.uid, {.all_kinds = true});
  REQUIRE(everything.size() > 5);
  CHECK(everything.front().state == EnvironmentState::provisioning);
  CHECK(everything.back().state == EnvironmentState::destroyed);
  CHECK(everything.back().url.empty());
  for (const EnvironmentEvent& event : everything) {
    CHECK(event.vm_id == "fuse-e");
    CHECK(event.id.size() == 32);
    CHECK((event.event == "state") == event.state.has_value());
  }
  // Going on after any of them gives exactly the others.
  for (std::size_t i = 0; i + 1 < everything.size(); ++i) {
    const auto rest = all_events(api, made.uid, {everything[i].id, true});
    REQUIRE(rest.size() == everything.size() - i - 1);
    CHECK(rest.front().id == everything[i + 1].id);
  }
  for (const EnvironmentEvent& event : all_events(api, made.uid, {})) {
    CHECK(event.event != "job");
  }
  // The id is free: whoever did not follow it from before is told so.
  const auto gone = api.events("fuse-e", {}, [](const auto&) { return true; }, {});
  REQUIRE_FALSE(gone.has_value());
  CHECK(gone.error().code == ErrorCode::not_found);
}

void a_live_stream(EnvironmentWorld& world) {
  EnvironmentApi& api = world.api();
  const Environment made = value(api.create(plain("live"), {}));
  std::atomic<int> seen{0};
  std::vector<EnvironmentEvent> got;
  std::thread reader([&] {
    (void)api.events("fuse-live", {},
                     [&](const EnvironmentEvent& event) {
                       got.push_back(event);
                       ++seen;
                       seen.notify_all();
                       return true;
                     },
                     {});
  });
  seen.wait(0);  // the current state comes at once
  CHECK(api.destroy("fuse-live").has_value());
  reader.join();
  REQUIRE(got.size() == 3);
  CHECK(got[0].state == EnvironmentState::running);
  CHECK(got[1].state == EnvironmentState::destroying);
  CHECK(got[2].state == EnvironmentState::destroyed);

  std::stop_source stop;
  (void)value(api.create(plain("live"), {}));
  const auto done = api.events(
      "fuse-live", {},
      [&](const EnvironmentEvent&) {
        stop.request_stop();
        return true;
      },
      stop.get_token());
  CHECK(done.has_value());
}

void racing_creates(EnvironmentWorld& world) {
  std::atomic<int> made{0};
  std::atomic<int> refused{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        const auto result = world.api().create(plain("race"), {});
        if (result) ++made;
        if (!result && result.error().message ==
                           "task already assigned: task race already assigned to vm fuse-race") {
          ++refused;
        }
      });
    }
  }
  CHECK(made == 1);
  CHECK(refused == 7);
  CHECK(world.host().made() == 1);
  CHECK(world.host().violations().empty());
}

}  // namespace

void check_environment_api(const EnvironmentWorldFactory& make_world) {
  using Part = void (*)(EnvironmentWorld&);
  const std::vector<std::pair<const char*, Part>> parts = {
      {"create, get, list, destroy", create_get_list_destroy},
      {"refusals", refusals},
      {"paging", paging},
      {"a failed create", a_failed_create},
      {"exec and attach", exec_and_attach},
      {"a job and its log", a_job},
      {"stopping a job", stopping_a_job},
      {"draining", draining},
      {"a short job", a_short_job},
      {"events", events},
      {"a live stream", a_live_stream},
      {"racing creates", racing_creates},
  };
  for (const auto& [name, run] : parts) {
    INFO(name);
    const auto world = make_world();
    run(*world);
  }
}

}  // namespace fuse
