#include "cmd/orchestrator_settings.h"

#include <algorithm>
#include <array>
#include <limits>

#include "orchestrator/postgres.h"

namespace fuse::cmd {

namespace {

constexpr std::array<std::string_view, 4> secrets = {"ORCH_AUTH_TOKEN", "TOKEN_ENCRYPTION_KEY",
                                                     "DATABASE_URL", "FIRECRACKER_TOKEN"};

constexpr std::array<Setting, 18> all_settings = {{
    {"ORCH_LISTEN", "--listen", "[HOST]:PORT", "Address to listen on"},
    {"ORCH_DATABASE", "--database", "FILE", "SQLite database; made when it is missing"},
    {"ORCH_AUTH_TOKEN_FILE", "--auth-token-file", "FILE",
     "File with the master token; else ORCH_AUTH_TOKEN"},
    {"ORCH_REQUIRE_AUTH", "--require-auth", "FLAG", "Do not start without a master token and key"},
    {"ORCH_TLS_CERT", "--tls-cert", "FILE", "Certificate and its chain, PEM"},
    {"ORCH_TLS_KEY", "--tls-key", "FILE", "The certificate's key, PEM"},
    {"ORCH_ALLOWED_CIDRS", "--allowed-cidrs", "LIST", "Addresses that may call, as 10.0.0.0/8,..."},
    {"ORCH_SECURE_COOKIES", "--secure-cookies", "FLAG", "Cookies for TLS alone: behind a proxy"},
    {"ORCH_VM_PREFIX", "--vm-prefix", "TEXT", "What ids of environments begin with"},
    {"ORCH_PLACEMENT", "--placement", "HOW", "spread or binpack"},
    {"ORCH_WORKERS", "--workers", "N", "How many environments are worked on at a time"},
    {"ORCH_MAX_STARTUP_SECONDS", "--max-startup-seconds", "N",
     "Most that a startup script may ask for"},
    {"ORCH_SHUTDOWN_TIMEOUT_SECONDS", "--shutdown-timeout", "N",
     "How long calls in hand may take when it is stopped"},
    {"ORCH_KEY_FILE", "--key-file", "FILE",
     "Key that seals secrets; made when missing; else TOKEN_ENCRYPTION_KEY"},
    {"FUSE_LOG_FORMAT", "--log-format", "FORM", "text or json"},
    {"AGENT_DOWNLOAD_URL", "--agent-download-url", "URL", "Accepted and without effect"},
    {"FIRECRACKER_BASE_URL", "--firecracker-base-url", "URL", "Accepted and without effect"},
    {"ORCH_STATE_DIR", "--state-dir", "DIR", "Folder of database and key, where not said"},
}};

constexpr std::array<std::string_view, 2> without_effect = {"AGENT_DOWNLOAD_URL",
                                                            "FIRECRACKER_BASE_URL"};

// "8080", ":8080", "127.0.0.1:8080", "[::1]:8080".
std::optional<TcpEndpoint> endpoint_of(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  std::string host = colon == std::string::npos ? "" : text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    return std::nullopt;
  }
  const auto number = parse_int(port);
  if (!number || *number < 0 || *number > std::numeric_limits<std::uint16_t>::max()) {
    return std::nullopt;
  }
  return TcpEndpoint{.host = host.empty() ? "0.0.0.0" : host,
                     .port = static_cast<std::uint16_t>(*number)};
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

void read_tls(SettingSources& sources, OrchestratorSettings& settings) {
  TlsFiles files;
  sources.path("ORCH_TLS_CERT", files.certificate);
  sources.path("ORCH_TLS_KEY", files.key);
  if (files.certificate.empty() && files.key.empty()) return;
  if (files.certificate.empty()) sources.complain("ORCH_TLS_KEY", "needs --tls-cert beside it");
  if (files.key.empty()) sources.complain("ORCH_TLS_CERT", "needs --tls-key beside it");
  settings.tls = files;
}

void read_ranges(SettingSources& sources, OrchestratorSettings& settings) {
  const std::string said = sources.text("ORCH_ALLOWED_CIDRS");
  if (said.empty()) return;
  for (const std::string& part : split(said, ',')) {
    auto range = AddressRange::parse(std::string(trim(part)));
    if (!range) return sources.complain("ORCH_ALLOWED_CIDRS", cat(": ", range.error().message));
    settings.callers.allowed.push_back(*std::move(range));
  }
}

// Where database and key are when nobody says: a service's folder, else the user's.
fs::path state_dir(SettingSources& sources, const Variables& variables) {
  fs::path dir;
  sources.path("ORCH_STATE_DIR", dir);
  if (!dir.empty()) return dir;
  const fs::path service = variables("STATE_DIRECTORY").value_or("");
  if (service.is_absolute()) return service / "orchestrator";
  const auto config = read_config(variables);
  return config && !config->state_dir.empty() ? config->state_dir / "orchestrator"
                                              : fs::path("/var/lib/fuse/orchestrator");
}

void read_places(SettingSources& sources, const Variables& variables,
                 OrchestratorSettings& settings) {
  const fs::path dir = state_dir(sources, variables);
  settings.database = dir / "fuse.db";
  sources.path("ORCH_DATABASE", settings.database);
  settings.key_file = settings.database.parent_path() / "key";
  sources.path("ORCH_KEY_FILE", settings.key_file);
}

void read_values(SettingSources& sources, OrchestratorSettings& settings) {
  constexpr std::int64_t most_workers = 512;
  constexpr std::int64_t most_seconds = 3600;
  read_tls(sources, settings);
  read_ranges(sources, settings);
  sources.flag("ORCH_SECURE_COOKIES", settings.callers.secure_cookies);
  if (const auto prefix = sources.text("ORCH_VM_PREFIX"); !prefix.empty()) settings.prefix = prefix;
  sources.choice<PlacementPolicy>(
      "ORCH_PLACEMENT",
      {{"spread", PlacementPolicy::spread}, {"binpack", PlacementPolicy::binpack}},
      settings.policy);
  sources.number("ORCH_WORKERS", 1, most_workers, settings.workers);
  const auto seconds = [&](std::string_view variable, std::chrono::seconds& into) {
    std::int64_t value = into.count();
    sources.number(variable, 1, most_seconds, value);
    into = std::chrono::seconds(value);
  };
  seconds("ORCH_MAX_STARTUP_SECONDS", settings.most_startup);
  seconds("ORCH_SHUTDOWN_TIMEOUT_SECONDS", settings.shutdown);
  sources.choice<LogFormat>("FUSE_LOG_FORMAT",
                            {{"text", LogFormat::text}, {"json", LogFormat::json}},
                            settings.log_format);
  for (const std::string_view variable : without_effect) {
    if (sources.text(variable).empty()) continue;
    settings.warnings.push_back(cat(sources.origin(variable), " has no effect"));
  }
}

// Several replicas must seal and open with one key, so none is made for them.
void read_server(SettingSources& sources, OrchestratorSettings& settings) {
  settings.database_url = sources.text("DATABASE_URL");
  if (settings.database_url.empty()) return;
  if (const auto place = postgres_place(settings.database_url); !place) {
    sources.complain("DATABASE_URL", "must be as postgresql://USER:PASSWORD@HOST/DATABASE");
  }
  if (settings.key.empty()) {
    sources.complain("DATABASE_URL", "needs TOKEN_ENCRYPTION_KEY, the same for every replica");
  }
}

// 64 hex digits.
void read_key(SettingSources& sources, OrchestratorSettings& settings) {
  const std::string said = sources.text("TOKEN_ENCRYPTION_KEY");
  if (said.empty()) return;
  const auto key = hex_decode(said);
  if (key && key->size() == 32) {
    settings.key = *key;
  } else {
    // Without the value: it is a secret, if a wrong one.
    sources.complain("TOKEN_ENCRYPTION_KEY", "must be 64 hexadecimal digits");
  }
}

// Who may call, where from, and what is said about it.
void settle_access(SettingSources& sources, OrchestratorSettings& settings) {
  bool required = false;
  sources.flag("ORCH_REQUIRE_AUTH", required);
  const bool has_token = !settings.callers.master_token.empty();
  if (required && !has_token) {
    sources.complain("ORCH_REQUIRE_AUTH", "needs ORCH_AUTH_TOKEN or --auth-token-file");
  }
  if (required && settings.key.empty()) {
    sources.complain("ORCH_REQUIRE_AUTH", "needs TOKEN_ENCRYPTION_KEY");
  }
  const std::string listen = sources.text("ORCH_LISTEN");
  if (!listen.empty()) {
    const auto endpoint = endpoint_of(listen);
    if (!endpoint) {
      return sources.complain("ORCH_LISTEN", cat("must be [HOST]:PORT, got \"", listen, "\""));
    }
    settings.listen = *endpoint;
  }
  if (has_token) return;
  const bool everywhere = listen.empty() || listen.starts_with(':');
  if (everywhere) settings.listen.host = "127.0.0.1";
  if (!is_loopback(settings.listen.host)) {
    return sources.complain("ORCH_LISTEN",
                            "is more than this machine, where nobody has to have a token: set "
                            "ORCH_AUTH_TOKEN, or listen on 127.0.0.1");
  }
  settings.warnings.emplace_back(
      "there is no ORCH_AUTH_TOKEN: whoever reaches this machine's loopback addresses may do "
      "everything");
}

}  // namespace

SettingFile orchestrator_setting_file() {
  return {"the orchestrator", all_settings, secrets};
}

Result<OrchestratorSettings> read_orchestrator_settings(const SettingFlags& flags,
                                                        const Variables& variables, Host& host) {
  auto lines =
      read_settings_file(host, flags.file, usual_orchestrator_file, orchestrator_setting_file());
  if (!lines) return lines.error();
  SettingSources sources(all_settings, flags, variables, *std::move(lines),
                         flags.file.empty() ? std::string(usual_orchestrator_file) : flags.file);
  OrchestratorSettings settings;
  auto token = read_token(sources, host, "ORCH_AUTH_TOKEN_FILE", "ORCH_AUTH_TOKEN");
  if (!token) return token.error();
  settings.callers.master_token = *std::move(token);
  read_places(sources, variables, settings);
  read_values(sources, settings);
  read_key(sources, settings);
  read_server(sources, settings);
  settle_access(sources, settings);
  if (sources.problem()) return *sources.problem();
  return settings;
}

}  // namespace fuse::cmd
