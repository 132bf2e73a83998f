#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "cmd/settings.h"
#include "net/http_server.h"
#include "orchestrator/orchestrator.h"

namespace fuse::cmd {

// Everything that `fuse orchestrator serve` can be told but its secrets.
SettingFile orchestrator_setting_file();

struct OrchestratorSettings {
  TcpEndpoint listen{.host = "0.0.0.0", .port = 8080};
  std::optional<TlsFiles> tls{};
  fs::path database{};         // SQLite
  std::string database_url{};  // PostgreSQL, instead of it
  fs::path key_file{};         // made when it is missing; without a key of 64 hex digits
  std::string key{};           // 32 bytes; empty: the file's
  CallerRules callers{};
  std::string prefix = "fuse-";
  PlacementPolicy policy = PlacementPolicy::spread;
  std::int32_t workers = 32;
  std::chrono::seconds most_startup{55};
  std::chrono::seconds shutdown{30};
  LogFormat log_format = LogFormat::text;
  // What should be known about them, such as that nobody has to have a token.
  std::vector<std::string> warnings{};
};

inline constexpr std::string_view usual_orchestrator_file = "/etc/fuse/orchestrator.env";

// Reads them.  An error names the flag, the variable or the line, the value and
// what it must be.
Result<OrchestratorSettings> read_orchestrator_settings(const SettingFlags& flags,
                                                        const Variables& variables, Host& host);

}  // namespace fuse::cmd
