#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "base/log.h"
#include "cmd/settings.h"
#include "net/http_server.h"

namespace fuse::cmd {

// Everything that `fuse agent serve` can be told but the token itself.
SettingFile agent_setting_file();

struct AgentSettings {
  std::string token{};
  std::string listen = "0.0.0.0";
  std::uint16_t port = 8091;  // 0: the kernel picks
  std::optional<TlsFiles> tls{};
  fs::path dir = "/var/lib/fuse";
  fs::path images_dir{};      // images/ in it
  fs::path base_rootfs{};     // empty: the image "base"
  fs::path vfio_inventory{};  // empty: the usual file in `dir`
  fs::path mig_inventory{};   // the same
  std::string qemu{};         // empty: what PATH has
  std::string qemu_user{};    // empty: fuse-qemu or nobody
  fs::path ovmf_code{};       // empty: where packages install it
  std::string accel{};        // "", auto, kvm or tcg
  std::string public_host{};
  std::uint16_t fused_port = 9550;
  std::uint16_t host_port_base = 19650;
  std::size_t most_body = std::size_t{1} << 20U;
  std::size_t most_upload = std::size_t{64} << 20U;
  std::chrono::seconds request_timeout{60};
  LogFormat log_format = LogFormat::text;
  // Settings that older agents had and that mean nothing to this one.
  std::vector<std::string> without_effect{};
};

inline constexpr std::string_view usual_agent_file = "/etc/fuse/agent.env";

// Reads them.  An error names the flag, the variable or the line, the value and
// what it must be; no token is one too.
Result<AgentSettings> read_agent_settings(const SettingFlags& flags, const Variables& variables,
                                          Host& host);

}  // namespace fuse::cmd
