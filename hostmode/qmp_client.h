#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/host.h"
#include "hostmode/qmp.h"

namespace fuse {

// One conversation with a QEMU's monitor.  QEMU serves one client at a time and
// lets a second one wait in silence, so conversations are short.
class QmpClient {
 public:
  struct Limits {
    // For the greeting: a monitor that keeps silent is held by another process.
    std::chrono::milliseconds greeting{std::chrono::seconds(10)};
    std::chrono::milliseconds answer{std::chrono::seconds(30)};
  };

  // Connects to the socket in a VM's folder and goes through the greeting.
  static Result<QmpClient> connect(const fs::path& vm_dir, const Limits& limits);
  // Over a connection that is open already; does the greeting.
  static Result<QmpClient> over(Fd connection, const Limits& limits);

  // The answer's "return" as JSON text.  QEMU's refusal is internal with its own
  // words; a connection that ends is unreachable.
  Result<std::string> execute(std::string_view command, const nlohmann::ordered_json& arguments);
  Result<std::string> execute(std::string_view command);
  // What the human monitor prints for `line`.
  Result<std::string> human(const std::string& line);

 private:
  QmpClient(Fd connection, const Limits& limits)
      : connection_(std::move(connection)), limits_(limits) {}
  Result<QmpMessage> receive(std::chrono::steady_clock::time_point deadline);
  Result<void> send(std::string_view bytes);

  Fd connection_;
  Limits limits_;
  QmpLines lines_;
  std::int64_t last_id_ = 0;
};

// -uuid of the QEMU behind the monitor, lower case.
Result<std::string> query_uuid(QmpClient& qmp);
// What the VM does: "running", "paused", "io-error", or another of QEMU's RunState.
Result<std::string> query_status(QmpClient& qmp);

}  // namespace fuse
