#include "cmd/agent_settings.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/text.h"

namespace fuse::cmd {

namespace {

constexpr std::string_view token_variable = "QEMU_AGENT_TOKEN";

constexpr std::array<AgentSetting, 22> all_settings = {{
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
    {"OVMF_CODE", "--ovmf-code", "FILE", "Accepted and without effect"},
    {"MIG_LIFECYCLE_MANAGED", "--mig-lifecycle-managed", "FLAG", "Accepted and without effect"},
    {"MIG_SETUP_SCRIPT", "--mig-setup-script", "FILE", "Accepted and without effect"},
}};

constexpr std::array<std::string_view, 3> without_effect = {"OVMF_CODE", "MIG_LIFECYCLE_MANAGED",
                                                            "MIG_SETUP_SCRIPT"};

bool is_known(std::string_view name) {
  return name == token_variable ||
         std::ranges::find(all_settings, name, &AgentSetting::variable) != all_settings.end();
}

std::string_view flag_of(std::string_view variable) {
  const auto found = std::ranges::find(all_settings, variable, &AgentSetting::variable);
  return found == all_settings.end() ? std::string_view() : found->flag;
}

std::string_view unquoted(std::string_view value) {
  const bool quoted = value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
                      value.back() == value.front();
  return quoted ? value.substr(1, value.size() - 2) : value;
}

// Where settings come from, one after another; remembers the first problem.
class Sources {
 public:
  Sources(const AgentFlags& flags, const Variables& variables, AgentFlags file, std::string name)
      : flags_(flags), variables_(variables), file_(std::move(file)), name_(std::move(name)) {}

  [[nodiscard]] std::string text(std::string_view variable) const {
    if (const auto flag = flags_.find(variable); flag != flags_.end()) return flag->second;
    std::string said = variables_(std::string(variable)).value_or("");
    if (!said.empty()) return said;
    const auto line = file_.find(variable);
    return line == file_.end() ? std::string() : line->second;
  }
  // What the value at hand was said by: "--port", "QEMU_AGENT_PORT in FILE".
  [[nodiscard]] std::string origin(std::string_view variable) const {
    if (flags_.contains(variable)) return std::string(flag_of(variable));
    if (!variables_(std::string(variable)).value_or("").empty()) return std::string(variable);
    return cat(variable, " in ", name_);
  }

  template <class T>
  void number(std::string_view variable, std::int64_t least, std::int64_t most, T& into) {
    const std::string said = text(variable);
    if (said.empty()) return;
    const auto value = parse_int(said);
    if (value && *value >= least && *value <= most) {
      into = static_cast<T>(*value);
      return;
    }
    complain(variable,
             cat("must be a whole number from ", least, " to ", most, ", got \"", said, "\""));
  }
  void path(std::string_view variable, fs::path& into) {
    const fs::path said = text(variable);
    if (said.empty()) return;
    if (said.is_absolute()) {
      into = said.lexically_normal();
      return;
    }
    complain(variable, cat("must be an absolute path, got \"", said.native(), "\""));
  }
  template <class T>
  void choice(std::string_view variable,
              std::initializer_list<std::pair<std::string_view, T>> choices, T& into) {
    const std::string said = text(variable);
    if (said.empty()) return;
    std::vector<std::string> names;
    for (const auto& [name, value] : choices) {
      names.emplace_back(name);
      if (name != said) continue;
      into = value;
      return;
    }
    complain(variable, cat("must be one of ", join(names, ", "), ", got \"", said, "\""));
  }
  void complain(std::string_view variable, std::string_view problem) {
    if (!problem_) {
      problem_ = Error{ErrorCode::invalid_argument, cat(origin(variable), " ", problem)};
    }
  }
  [[nodiscard]] const std::optional<Error>& problem() const { return problem_; }

 private:
  const AgentFlags& flags_;
  const Variables& variables_;
  AgentFlags file_;
  std::string name_;
  std::optional<Error> problem_{};
};

Result<AgentFlags> read_file(Host& host, const fs::path& file) {
  const fs::path path = file.empty() ? fs::path(usual_agent_file) : file;
  const auto text = host.read_file(path);
  if (text) return parse_agent_file(*text, path.native());
  if (file.empty() && text.error().code == ErrorCode::not_found) return AgentFlags();
  return text.error();
}

Result<std::string> token_of(const Sources& sources, Host& host) {
  const fs::path file = sources.text("QEMU_AGENT_TOKEN_FILE");
  std::string token = sources.text(token_variable);
  if (!file.empty()) {
    const auto text = host.read_file(file);
    if (!text) return in_context(sources.origin("QEMU_AGENT_TOKEN_FILE"), text.error());
    token = trim(*text);
  }
  if (token.empty()) {
    return Error{ErrorCode::invalid_argument,
                 "the agent has no token: set QEMU_AGENT_TOKEN, or name a file with --token-file",
                 {{"hint", "make one: openssl rand -hex 32"}}};
  }
  const auto printable = [](char c) { return c > ' ' && c < '\x7f'; };
  if (std::ranges::all_of(token, printable)) return token;
  return Error{ErrorCode::invalid_argument,
               "the token may have no blanks and only printable ASCII characters: it is sent in a "
               "header"};
}

void read_tls(Sources& sources, AgentSettings& settings) {
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

void read_values(Sources& sources, AgentSettings& settings) {
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

std::span<const AgentSetting> agent_settings() {
  return all_settings;
}

Result<AgentFlags> parse_agent_file(std::string_view text, std::string_view name) {
  AgentFlags out;
  std::size_t number = 0;
  for (const std::string& whole : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(whole);
    if (line.empty() || line.front() == '#') continue;
    const std::size_t equals = line.find('=');
    const std::string variable(trim(line.substr(0, equals)));
    if (equals == std::string_view::npos) {
      return Error{ErrorCode::invalid_argument,
                   cat(name, ":", number, ": want NAME=VALUE, got \"", variable, "\"")};
    }
    if (!is_known(variable)) {
      return Error{ErrorCode::invalid_argument,
                   cat(name, ":", number, ": ", variable, " is no setting of the agent")};
    }
    out[variable] = unquoted(trim(line.substr(equals + 1)));
  }
  return out;
}

Result<AgentSettings> read_agent_settings(const AgentFlags& flags, const Variables& variables,
                                          Host& host, const fs::path& file) {
  auto lines = read_file(host, file);
  if (!lines) return lines.error();
  Sources sources(flags, variables, *std::move(lines),
                  file.empty() ? std::string(usual_agent_file) : file.native());
  AgentSettings settings;
  read_values(sources, settings);
  if (sources.problem()) return *sources.problem();
  auto token = token_of(sources, host);
  if (!token) return token.error();
  settings.token = *std::move(token);
  return settings;
}

}  // namespace fuse::cmd
