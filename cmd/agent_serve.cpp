#include "cmd/agent_serve.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/text.h"
#include "base/version.h"
#include "cmd/stop_request.h"
#include "hostmode/agent.h"
#include "hostmode/http.h"
#include "hostmode/public_host.h"

namespace fuse::cmd {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Result<std::string> public_host_of(const AgentSettings& settings) {
  if (settings.public_host.empty()) return probe_public_host();
  if (is_public_host(settings.public_host)) return settings.public_host;
  return Error{
      ErrorCode::invalid_argument,
      cat("PUBLIC_HOST must be an IP address or a DNS name, got \"", settings.public_host, "\"")};
}

Result<AgentConfig> agent_config_of(const AgentSettings& settings, const Variables& variables) {
  auto host = public_host_of(settings);
  if (!host) return host.error();
  AgentConfig config{.state_dir = settings.dir / "agent-state",
                     .devices = {.dir = settings.dir,
                                 .vfio_inventory = settings.vfio_inventory,
                                 .mig_inventory = settings.mig_inventory}};
  if (const auto path = variables("PATH"); path && !path->empty()) config.path = *path;
  if (!settings.qemu.empty()) config.qemu = settings.qemu;
  config.qemu_user = settings.qemu_user;
  config.ovmf_code = settings.ovmf_code;
  config.accel = accel_policy_of(settings.accel).value_or(config.accel);
  config.ports = {.bind = "0.0.0.0",
                  .public_host = *std::move(host),
                  .vm_port_base = settings.host_port_base,
                  .guest_port = settings.fused_port};
  return config;
}

HttpServerOptions server_options_of(const AgentSettings& settings, const AgentSite& site) {
  HttpServerOptions options = agent_server_options(site);
  options.tls = settings.tls;
  const milliseconds patience = settings.request_timeout;
  options.head_time = std::min(options.head_time, patience);
  options.body_time = patience;
  options.stall_time = patience;
  options.idle_time = patience;
  return options;
}

}  // namespace

Result<void> serve_agent(const AgentSettings& settings, const AgentServeParts& parts) {
  auto config = agent_config_of(settings, parts.variables);
  if (!config) return config.error();
  // Before there are threads, so that all of them leave signals to the watch.
  StopRequest stop;
  const auto watch = parts.watch_signals({SIGTERM, SIGINT, SIGHUP}, [&stop](int number) {
    if (number != SIGHUP) stop.ask(cat("signal ", number));
  });
  parts.log.info("starting", {{"version", std::string(version())},
                              {"build_id", build_id()},
                              {"pid", cat(::getpid())},
                              {"state", config->state_dir.native()},
                              {"public_host", config->ports.public_host}});
  for (const std::string& name : settings.without_effect) {
    parts.log.warning("a setting has no effect on this agent", {{"setting", name}});
  }
  const ImageStore images(
      {.dir = settings.images_dir, .agent_build = build_id(), .base_rootfs = settings.base_rootfs});
  const auto agent = Agent::start(
      {.host = parts.host,
       .clock = parts.clock,
       .log = parts.log,
       .resolve_image = [&images](const std::string& name) { return images.resolve(name); }},
      *std::move(config));
  if (!agent) return agent.error();
  AgentMetrics metrics;
  const AgentSite site{.agent = (*agent)->interfaces(),
                       .metrics = metrics,
                       .log = parts.log,
                       .clock = parts.clock,
                       .token = settings.token,
                       .most_body = settings.most_body,
                       .most_upload = settings.most_upload,
                       .devices_in_use = [&to = **agent] { return to.devices_in_use(); }};
  const auto server =
      HttpServer::listen(TcpEndpoint{.host = settings.listen, .port = settings.port},
                         server_options_of(settings, site), make_agent_handler(site), parts.log);
  if (!server) return server.error();
  parts.log.info("ready", {{"at", (*server)->place()}, {"vms", cat((*agent)->alive())}});

  const std::string why = stop.wait();
  parts.log.info("stopping", {{"because", why}});
  (*server)->stop(parts.stop_grace);
  parts.log.info("stopped", {{"vms", cat((*agent)->alive())}});
  return {};
}

}  // namespace fuse::cmd
