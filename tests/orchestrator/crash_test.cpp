#include <atomic>

#include "base/text.h"
#include "tests/orchestrator/engine.h"

// A worker may vanish at any moment: between two steps, within one before or
// after its call took effect, or while it writes.  Whoever comes next brings the
// environment where it was to go, and nothing is made twice or left behind.
namespace fuse {
namespace {

CreateEnvironmentRequest full_request() {
  auto request = job_request("train");
  request.phases->build = {{"deps", "make deps", ""}};
  request.files = {{"/a", "YQ=="}, {"/b", "Yg=="}};
  request.secrets = {{"k", "hush-hush-hush"}};
  request.spec.gpus = 1;
  request.on_exit = OnExit::destroy;
  return request;
}

HostCapacity one_gpu() {
  HostCapacity capacity{.cpus = 4, .ram_mb = 4096, .storage_gb = 50, .vm_count = 4, .gpus = 1};
  capacity.gpu_devices = {{.uuid = "GPU-1", .model = "A100"}};
  return capacity;
}

JobStatus ended_job() {
  return {.state = JobState::exited,
          .phase = JobPhase::done,
          .step = 1,
          .steps = 1,
          .exit_code = 3,
          .reason = "exited"};
}

// Nothing may be in use once everything has ended.
void check_all_free(Engine& engine) {
  CHECK(engine.host.vms().empty());
  CHECK(engine.host.violations().empty());
  const HostCapacity used = must(engine.fleet.get_host("local")).allocated;
  CHECK(used.cpus == 0);
  CHECK(used.vm_count == 0);
  CHECK(used.gpu_device_uuids.empty());
}

void take_over(Engine& engine, const std::string& owner) {
  engine.new_worker(owner);
  engine.clock.move(std::chrono::seconds(61));
}

TEST_CASE("a worker that is killed between any two steps is followed by another") {
  // The number of turns that the whole way takes.
  for (int survived = 0; survived < 14; ++survived) {
    Engine engine;
    engine.host.set_capacity(one_gpu());
    engine.poller.pass();
    engine.host.on_job = [](const JobSpec&) { return ended_job(); };
    const Environment environment = engine.create(full_request());
    INFO("killed after " << survived << " turns");
    for (int i = 0; i < survived; ++i) engine.worker->turn();
    take_over(engine, "second");
    engine.run_for(std::chrono::seconds(2));
    const Environment ended = engine.get(environment.uid);
    CHECK(ended.state == EnvironmentState::destroyed);
    CHECK(ended.job->exit_code == 3);
    CHECK(engine.host.made() == 1);
    check_all_free(engine);
  }
}

TEST_CASE("a worker that is killed after every single step gets there all the same") {
  Engine engine;
  engine.host.set_capacity(one_gpu());
  engine.poller.pass();
  engine.host.on_job = [](const JobSpec&) { return ended_job(); };
  const Environment environment = engine.create(full_request());
  for (int i = 0; i < 20; ++i) {
    engine.worker->turn();
    take_over(engine, cat("worker ", i));
  }
  CHECK(engine.get(environment.uid).state == EnvironmentState::destroyed);
  CHECK(engine.host.made() == 1);
  check_all_free(engine);
}

// Which call of the agent goes wrong, and whether it took effect before.
struct Fault {
  int call = 0;
  bool after_effect = false;
  ErrorCode code = ErrorCode::unreachable;
};

// Brings one environment through its life with that fault; false when there were
// fewer calls than that.
bool live_with(const Fault& fault) {
  Engine engine;
  engine.host.set_capacity(one_gpu());
  engine.poller.pass();
  engine.host.on_job = [](const JobSpec&) { return ended_job(); };
  const Environment environment = engine.create(full_request());
  std::atomic<int> calls{0};
  bool happened = false;
  const auto go_wrong = [&](const std::string& /*call*/) -> std::optional<Error> {
    if (++calls != fault.call) return std::nullopt;
    happened = true;
    return Error{fault.code, "the connection broke"};
  };
  (fault.after_effect ? engine.host.after : engine.host.before) = go_wrong;
  engine.run_for(std::chrono::seconds(10));
  INFO("call " << fault.call << (fault.after_effect ? " after" : " before") << " its effect");
  const Environment ended = engine.get(environment.uid);
  CHECK(is_terminal(ended.state));
  if (fault.code == ErrorCode::unreachable) CHECK(ended.state == EnvironmentState::destroyed);
  if (ended.state == EnvironmentState::destroyed) CHECK(ended.job->exit_code == 3);
  CHECK(engine.host.made() <= 1);
  check_all_free(engine);
  return happened;
}

TEST_CASE("a call of the agent that is lost on its way or back is made again") {
  for (const bool after_effect : {false, true}) {
    int call = 1;
    while (live_with({.call = call, .after_effect = after_effect})) ++call;
    CHECK(call > 8);
  }
}

TEST_CASE("a call of the agent that fails for good leaves nothing in use") {
  for (const bool after_effect : {false, true}) {
    int call = 1;
    while (live_with({.call = call, .after_effect = after_effect, .code = ErrorCode::internal})) {
      ++call;
    }
    CHECK(call > 8);
  }
}

// Fails the n-th statement and everything after it, as a disk that is full or a
// process that was killed.
class FailingSql : public SqlConnection {
 public:
  FailingSql(std::unique_ptr<SqlConnection> inner, std::shared_ptr<int> left)
      : inner_(std::move(inner)), left_(std::move(left)) {}
  Result<std::vector<SqlRow>> query(std::string_view sql,
                                    const std::vector<SqlValue>& parameters) override {
    if (spent()) return broken();
    return inner_->query(sql, parameters);
  }
  Result<std::int64_t> execute(std::string_view sql,
                               const std::vector<SqlValue>& parameters) override {
    if (spent()) return broken();
    return inner_->execute(sql, parameters);
  }
  Result<void> begin() override {
    if (spent()) return broken();
    return inner_->begin();
  }
  Result<void> commit() override {
    if (spent()) return broken();
    return inner_->commit();
  }
  Result<void> rollback() override { return inner_->rollback(); }
  [[nodiscard]] std::string_view blob_type() const override { return inner_->blob_type(); }
  [[nodiscard]] std::string_view row_lock() const override { return inner_->row_lock(); }
  Result<void> lock_schema() override { return inner_->lock_schema(); }
  Result<void> keep_copy(std::string_view label) override { return inner_->keep_copy(label); }

 private:
  static Error broken() { return {ErrorCode::internal, "database: disk I/O error"}; }
  // Negative: never.
  bool spent() {
    if (*left_ < 0) return false;
    if (*left_ == 0) return true;
    --*left_;
    return false;
  }
  std::unique_ptr<SqlConnection> inner_;
  std::shared_ptr<int> left_;
};

TEST_CASE("a create whose database fails at any statement books nothing, or all of it") {
  for (int statements = 0;; ++statements) {
    const auto left = std::make_shared<int>(-1);
    Engine engine(must(Store::open(std::make_unique<FailingSql>(open_test_sql(), left), test_key)));
    engine.host.set_capacity(one_gpu());
    engine.poller.pass();
    *left = statements;
    const auto created = engine.service.create(full_request(), {.respond_async = true});
    *left = -1;
    INFO("after " << statements << " statements");
    if (created) {
      CHECK(statements > 10);
      break;
    }
    CHECK(must(engine.service.list({})).environments.empty());
    check_all_free(engine);
    CHECK(engine.worker->turn() == Worker::Turn::idle);
  }
}

TEST_CASE("a worker whose database fails at any statement is followed by another") {
  for (int statements = 0;; ++statements) {
    const auto left = std::make_shared<int>(-1);
    Engine engine(must(Store::open(std::make_unique<FailingSql>(open_test_sql(), left), test_key)));
    engine.host.set_capacity(one_gpu());
    engine.poller.pass();
    engine.host.on_job = [](const JobSpec&) { return ended_job(); };
    const Environment environment = engine.create(full_request());
    *left = statements;
    engine.run_until_idle(20);
    const bool enough = *left > 0;
    *left = -1;
    take_over(engine, "second");
    engine.run_for(std::chrono::seconds(2));
    INFO("after " << statements << " statements");
    CHECK(engine.get(environment.uid).state == EnvironmentState::destroyed);
    CHECK(engine.get(environment.uid).job->exit_code == 3);
    CHECK(engine.host.made() == 1);
    check_all_free(engine);
    if (enough) {
      CHECK(statements > 50);
      break;
    }
  }
}

// Commits the n-th time too, but nobody hears of it, as when the connection breaks.
class ForgetfulSql final : public FailingSql {
 public:
  ForgetfulSql(std::unique_ptr<SqlConnection> inner, std::shared_ptr<int> left)
      : FailingSql(std::move(inner), std::make_shared<int>(-1)), left_(std::move(left)) {}
  Result<void> commit() override {
    auto done = FailingSql::commit();
    if (!done || (*left_)-- != 0) return done;
    return Error{ErrorCode::unavailable, "database: connection lost", {{"reason", "commit"}}};
  }

 private:
  std::shared_ptr<int> left_;
};

TEST_CASE("a worker that is not told of a commit goes on with what it did") {
  for (int commits = 0;; ++commits) {
    const auto left = std::make_shared<int>(-1);
    Engine engine(
        must(Store::open(std::make_unique<ForgetfulSql>(open_test_sql(), left), test_key)));
    engine.host.set_capacity(one_gpu());
    engine.poller.pass();
    engine.host.on_job = [](const JobSpec&) { return ended_job(); };
    const Environment environment = engine.create(full_request());
    *left = commits;
    engine.run_until_idle(20);
    const bool enough = *left >= 0;
    *left = -1;
    engine.worker->renew();
    engine.run_for(std::chrono::seconds(2));
    INFO("after " << commits << " commits");
    CHECK(engine.get(environment.uid).state == EnvironmentState::destroyed);
    CHECK(engine.get(environment.uid).job->exit_code == 3);
    CHECK(engine.host.made() == 1);
    check_all_free(engine);
    if (enough) {
      CHECK(commits > 10);
      break;
    }
  }
}

TEST_CASE("an operation that is wanted again while it is let go of is gone on with") {
  Engine engine;
  const Environment environment = engine.create(job_request("again"));
  // Its lease is ours in the database, and nothing in this worker knows of it.
  must(engine.store->run([&](StoreTx& tx) -> Result<void> {
    const WallTime now = engine.clock.wall();
    auto claimed = tx.operations.claim("first", now, now + std::chrono::seconds(60));
    if (!claimed) return claimed.error();
    return {};
  }));
  CHECK(engine.run_until_idle() == 0);
  engine.worker->renew();
  engine.run_for(std::chrono::seconds(1));
  CHECK(engine.get(environment.uid).state == EnvironmentState::running);
}

TEST_CASE("a startup script that was running when its worker was killed does not run twice") {
  Engine engine;
  CreateEnvironmentRequest request{.task_id = "web", .startup_script = "./once.sh"};
  const Environment environment = engine.create(request);
  // create_vm, deliver, and the note that the script begins.
  for (int i = 0; i < 3; ++i) engine.worker->turn();
  int runs = 0;
  engine.host.on_exec = [&](const ExecRequest&) {
    ++runs;
    return ExecResult{};
  };
  take_over(engine, "second");
  engine.run_for(std::chrono::seconds(2));
  CHECK(runs == 0);
  const Environment failed = engine.get(environment.uid);
  CHECK(failed.state == EnvironmentState::failed);
  CHECK(failed.error ==
        "provision vm fuse-web: startup script: the orchestrator was restarted while it ran");
}

TEST_CASE("a worker that lost its lease changes nothing any more") {
  Engine engine;
  engine.create(job_request("contested"));
  auto first = std::move(engine.worker);
  // The first is inside its call when the second takes over and finishes.
  bool taken_over = false;
  engine.host.after = [&](const std::string& call) -> std::optional<Error> {
    if (call != "create_vm" || taken_over) return std::nullopt;
    taken_over = true;
    take_over(engine, "second");
    engine.run_until_idle();
    return std::nullopt;
  };
  first->turn();
  while (first->turn() == Worker::Turn::worked) {
  }
  CHECK(engine.get("fuse-contested").state == EnvironmentState::running);
  CHECK(engine.host.made() == 1);
  CHECK(engine.host.violations().empty());
  int starts = 0;
  for (const std::string& call : engine.host.calls()) starts += call == "start_job" ? 1 : 0;
  CHECK(starts == 1);
}

}  // namespace
}  // namespace fuse
