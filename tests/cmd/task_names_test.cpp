#include "cmd/task_names.h"

#include "base/text.h"
#include "tests/catch.h"

namespace fuse::cmd {

namespace {

// Knows one environment by its id alone, and its task.
class OneEnvironment final : public EnvironmentApi {
 public:
  std::string id = "other-train";
  std::string task = "train";
  std::vector<std::string> asked{};
  bool ignores_filters = false;

  Result<Environment> create(const CreateEnvironmentRequest& request,
                             const CreateOptions& /*options*/) override {
    return Environment{.id = id, .task_id = request.task_id};
  }
  Result<EnvironmentPage> list(const EnvironmentFilter& filter) override {
    if (filter.task_id != task && !ignores_filters) return EnvironmentPage{};
    return EnvironmentPage{.environments = {{.id = id, .task_id = task}}};
  }
  Result<Environment> get(const std::string& name, bool /*include_ended*/) override {
    return look<Environment>("get", name, Environment{.id = id});
  }
  Result<void> destroy(const std::string& name) override {
    const auto found = look<int>("destroy", name, 0);
    return found ? Result<void>() : Result<void>(found.error());
  }
  Result<ExecResult> exec(const std::string& name, const ExecRequest& /*request*/) override {
    return look<ExecResult>("exec", name, {});
  }
  Result<std::unique_ptr<AttachSession>> attach(const std::string& name,
                                                const AttachRequest& /*request*/) override {
    return look<std::unique_ptr<AttachSession>>("attach", name, nullptr);
  }
  Result<void> stop_job(const std::string& name) override {
    const auto found = look<int>("stop", name, 0);
    return found ? Result<void>() : Result<void>(found.error());
  }
  Result<Environment> drain(const std::string& name) override {
    return look<Environment>("drain", name, {});
  }
  Result<void> rotate_token(const std::string& name) override {
    const auto found = look<int>("rotate", name, 0);
    return found ? Result<void>() : Result<void>(found.error());
  }
  Result<void> events(const std::string& name, const EventQuery& /*query*/,
                      const EventSink& /*sink*/, std::stop_token /*stop*/) override {
    const auto found = look<int>("events", name, 0);
    return found ? Result<void>() : Result<void>(found.error());
  }
  Result<LogRange> logs(const std::string& name, const LogQuery& /*query*/,
                        const ByteSink& /*sink*/, std::stop_token /*stop*/) override {
    return look<LogRange>("logs", name, {});
  }

 private:
  template <class T>
  Result<T> look(const std::string& call, const std::string& name, T found) {
    asked.push_back(cat(call, " ", name));
    if (name != id) return Error{ErrorCode::not_found, cat("vm not found: vm ", name)};
    return found;
  }
};

struct Named {
  OneEnvironment* one = nullptr;
  std::unique_ptr<TaskNames> names{};
  Named() {
    auto api = std::make_unique<OneEnvironment>();
    one = api.get();
    names = std::make_unique<TaskNames>(std::move(api));
  }
};

}  // namespace

TEST_CASE("every command finds an environment by its task") {
  Named world;
  TaskNames& names = *world.names;
  CHECK(names.get("train", true));
  CHECK(names.destroy("train"));
  CHECK(names.exec("train", {}));
  CHECK(names.attach("train", {}));
  CHECK(names.stop_job("train"));
  CHECK(names.drain("train"));
  CHECK(names.rotate_token("train"));
  CHECK(names.events("train", {}, {}, {}));
  CHECK(names.logs("train", {}, {}, {}));
  CHECK(world.one->asked.size() == 18);
}

TEST_CASE("an id is taken as it is") {
  Named world;
  CHECK(world.names->get("other-train", false));
  CHECK(world.one->asked == std::vector<std::string>{"get other-train"});
}

TEST_CASE("a name that is neither is refused under that name") {
  Named world;
  const auto refused = world.names->exec("nothing", {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "vm not found: vm nothing");
  world.one->ignores_filters = true;
  CHECK_FALSE(world.names->exec("nothing", {}));
  CHECK(world.one->asked == std::vector<std::string>{"exec nothing", "exec nothing"});
}

}  // namespace fuse::cmd
