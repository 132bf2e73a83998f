#include "tests/orchestrator/engine.h"

#include "base/text.h"

namespace fuse {

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
