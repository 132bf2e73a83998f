#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "guest/children.h"
#include "guest/event_loop.h"
#include "guest/health_verdict.h"

namespace fuse {

// One attempt of a health check.  Dropping it ends it.
class Probe {
 public:
  virtual ~Probe() = default;
  // It holds a process that cannot be killed, so another is not begun.
  [[nodiscard]] virtual bool is_stuck() const = 0;
};

// Called once, from the loop.  It may not drop its probe.
using OnProbed = std::function<void(const ProbeOutcome& outcome)>;

// GET on 127.0.0.1.
std::unique_ptr<Probe> probe_http(EventLoop& loop, const HealthcheckHttp& http,
                                  std::chrono::seconds timeout, OnProbed on_probed);
// A command; 0 passes.  `env_file`, where there is one, is a shell's text that sets
// its environment.
struct ExecProbe {
  std::vector<std::string> argv{};
  fs::path env_file{};
  std::chrono::seconds timeout{};
};
std::unique_ptr<Probe> probe_exec(EventLoop& loop, Children& children, const ExecProbe& exec,
                                  OnProbed on_probed);

}  // namespace fuse
