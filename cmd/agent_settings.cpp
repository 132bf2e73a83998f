#include "cmd/agent_settings.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/text.h"

namespace fuse::cmd {

namespace {

constexpr std::string_view token_variable = "QEMU_AGENT_TOKEN";
constexpr std::array secrets = {token_variable};

constexpr std::array<Setting, 23> all_settings = {{
    {"QEMU_AGENT_TOKEN_FILE", "--token-file", "FILE",
     "File with the token that callers must have; else QEMU_AGENT_TOKEN"},
    {"QEMU_AGENT_LISTEN", "--listen", "ADDRESS", "Address to listen on"},
    {"QEMU_AGENT_PORT", "--port", "PORT", "Port to listen on"},
    {"QEMU_AGENT_TLS_CERT", "--tls-cert", "FILE", "Certificate and its chain, PEM"},
    {"QEMU_AGENT_TLS_KEY", "--tls-key", "FILE", "The certificate's key, PEM"},
    {"QEMU_DIR", "--dir", "DIR", "Folder of the state, images and inventories"},
    {"IMAGES_DIR", "--images-dir", "DIR", "Folder of the guest images"},
    {"BASE_ROOTFS", "--base-rootfs", "FILE", "Image to start when none is named"},
    {"QEMU_BIN", "--qemu", "PROGRAM", "QEMU's program"},
    {"FUSE_QEMU_USER", "--qemu-user", "NAME",
     "User that QEMU becomes (fuse-qemu if there is one, else nobody)"},
    {"OVMF_CODE", "--ovmf-code", "FILE",
     "Firmware for images with their own boot loader, its variables beside it"},
    {"FUSE_ACCEL", "--accel", "HOW", "auto, kvm or tcg"},
    {"VFIO_INVENTORY", "--vfio-inventory", "FILE", "The inventory of whole devices"},
    {"MIG_INVENTORY", "--mig-inventory", "FILE", "The inventory of MIG instances"},
    {"PUBLIC_HOST", "--public-host", "HOST", "IP or DNS name at which VMs are reached"},
    {"FUSED_PORT", "--fused-port", "PORT", "Port of guests that a VM's own address leads to"},
    {"FUSE_HOST_PORT_BASE", "--host-port-base", "PORT",
     "VMs are reached at the ports that follow this one; 0: at none"},
    {"QEMU_AGENT_MAX_BODY_BYTES", "--max-body-bytes", "N", "Most bytes of a request's body"},
    {"QEMU_AGENT_MAX_UPLOAD_BYTES", "--max-upload-bytes", "N", "The same of an upload"},
    {"QEMU_AGENT_REQUEST_TIMEOUT", "--request-timeout", "SECONDS",
     "How long a client may stall before it is dropped"},
    {"FUSE_LOG_FORMAT", "--log-format", "FORM", "text or json"},
    {"MIG_LIFECYCLE_MANAGED", "--mig-lifecycle-managed", "FLAG", "Accepted and without effect"},
    {"MIG_SETUP_SCRIPT", "--mig-setup-script", "FILE", "Accepted and without effect"},
}};

constexpr std::array<std::string_view, 2> without_effect = {"MIG_LIFECYCLE_MANAGED",
                                                            "MIG_SETUP_SCRIPT"};

void read_tls(SettingSources& sources, AgentSettings& settings) {
  TlsFiles files;
  sources.path("QEMU_AGENT_TLS_CERT", files.certificate);
  sources.path("QEMU_AGENT_TLS_KEY", files.key);
  if (files.certificate.empty() && files.key.empty()) return;
  if (files.certificate.empty() || files.key.empty()) {
    const std::string_view there = files.key.empty() ? "QEMU_AGENT_TLS_CERT" : "QEMU_AGENT_TLS_KEY";
    sources.complain(there,
                     cat("needs ", files.key.empty() ? "--tls-key" : "--tls-cert", " beside it"));
  }
  settings.tls = files;
}

void read_values(SettingSources& sources, AgentSettings& settings) {
  constexpr std::int64_t ports = std::numeric_limits<std::uint16_t>::max();
  constexpr std::int64_t most_bytes = std::int64_t{1} << 40;
  constexpr std::int64_t most_seconds = 86'400;
  if (auto listen = sources.text("QEMU_AGENT_LISTEN"); !listen.empty()) settings.listen = listen;
  sources.number("QEMU_AGENT_PORT", 0, ports, settings.port);
  read_tls(sources, settings);
  sources.path("QEMU_DIR", settings.dir);
  settings.images_dir = settings.dir / "images";
  sources.path("IMAGES_DIR", settings.images_dir);
  sources.path("BASE_ROOTFS", settings.base_rootfs);
  sources.path("VFIO_INVENTORY", settings.vfio_inventory);
  sources.path("MIG_INVENTORY", settings.mig_inventory);
  settings.qemu = sources.text("QEMU_BIN");
  settings.qemu_user = sources.text("FUSE_QEMU_USER");
  sources.path("OVMF_CODE", settings.ovmf_code);
  sources.choice<std::string>("FUSE_ACCEL", {{"auto", "auto"}, {"kvm", "kvm"}, {"tcg", "tcg"}},
                              settings.accel);
  settings.public_host = sources.text("PUBLIC_HOST");
  sources.number("FUSED_PORT", 1, ports, settings.fused_port);
  sources.number("FUSE_HOST_PORT_BASE", 0, ports - 1, settings.host_port_base);
  sources.number("QEMU_AGENT_MAX_BODY_BYTES", 1, most_bytes, settings.most_body);
  sources.number("QEMU_AGENT_MAX_UPLOAD_BYTES", 1, most_bytes, settings.most_upload);
  std::int64_t seconds = settings.request_timeout.count();
  sources.number("QEMU_AGENT_REQUEST_TIMEOUT", 1, most_seconds, seconds);
  settings.request_timeout = std::chrono::seconds(seconds);
  sources.choice<LogFormat>("FUSE_LOG_FORMAT",
                            {{"text", LogFormat::text}, {"json", LogFormat::json}},
                            settings.log_format);
  for (const std::string_view variable : without_effect) {
    if (!sources.text(variable).empty())
      settings.without_effect.push_back(sources.origin(variable));
  }
}

}  // namespace

SettingFile agent_setting_file() {
  return {"the agent", all_settings, secrets};
}

Result<AgentSettings> read_agent_settings(const SettingFlags& flags, const Variables& variables,
                                          Host& host) {
  auto lines = read_settings_file(host, flags.file, usual_agent_file, agent_setting_file());
  if (!lines) return lines.error();
  SettingSources sources(all_settings, flags, variables, *std::move(lines),
                         flags.file.empty() ? std::string(usual_agent_file) : flags.file);
  AgentSettings settings;
  read_values(sources, settings);
  if (sources.problem()) return *sources.problem();
  auto token = read_token(sources, host, "QEMU_AGENT_TOKEN_FILE", token_variable);
  if (!token) return token.error();
  if (token->empty()) {
    return Error{ErrorCode::invalid_argument,
                 "the agent has no token: set QEMU_AGENT_TOKEN, or name a file with --token-file",
                 {{"hint", "make one: openssl rand -hex 32"}}};
  }
  settings.token = *std::move(token);
  return settings;
}

}  // namespace fuse::cmd
