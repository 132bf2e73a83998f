#include "tests/orchestrator/engine.h"

#include <cstdlib>

#include "base/ids.h"
#include "base/text.h"
#include "orchestrator/postgres.h"

namespace fuse {

OpenSql test_database() {
  const char* const server = std::getenv("FUSE_TEST_POSTGRES");
  if (server == nullptr) return [] { return open_sqlite({}); };
  const std::string schema = cat("test_", random_hex(6));
  auto admin = must(open_postgres(server));
  (void)must(admin->execute(cat("CREATE SCHEMA ", schema), {}));
  return [uri = cat(server, "&options=-csearch_path%3D", schema)] { return open_postgres(uri); };
}

std::unique_ptr<SqlConnection> open_test_sql() {
  return must(test_database()());
}

bool on_postgres() {
  return std::getenv("FUSE_TEST_POSTGRES") != nullptr;
}

std::unique_ptr<Store> pooled_store() {
  constexpr std::size_t connections = 8;
  if (!on_postgres()) return memory_store();
  return must(Store::open(std::make_unique<SqlPool>(test_database(), connections), test_key));
}

std::string line_of(const EnvironmentEvent& event) {
  if (event.event == "state") {
    return cat("state ", to_string(*event.state), event.error.empty() ? "" : ": ", event.error);
  }
  if (event.event == "job") {
    const std::string code = event.job->exit_code ? cat(" ", *event.job->exit_code) : "";
    return cat("job ", to_string(event.job->phase), ' ', to_string(event.job->state), code);
  }
  const std::string index = event.index > 0 ? cat(' ', event.index, '/', event.total) : "";
  const bool over = event.duration_ms || event.exit_code;
  return cat("step ", event.key, index, over ? " done" : "");
}

std::vector<std::string> lines_of(const std::vector<EnvironmentEvent>& events) {
  std::vector<std::string> out;
  for (const EnvironmentEvent& event : events) out.push_back(line_of(event));
  return out;
}

}  // namespace fuse
