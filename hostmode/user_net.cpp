#include "hostmode/user_net.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_reader.h"
#include "base/text.h"
#include "hostmode/public_host.h"
#include "hostmode/qemu_argv.h"

namespace fuse {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (std::string& word : split(line, ' ')) {
    if (!trim(word).empty()) words.emplace_back(trim(word));
  }
  return words;
}

std::optional<HostForward> forward_in(std::string_view line) {
  // Protocol[State]  FD  Source Address  Port  Dest. Address  Port  RecvQ SendQ
  const auto words = words_of(line);
  if (words.size() < 6 || words[0] != "TCP[HOST_FORWARD]") return std::nullopt;
  const auto host_port = parse_int(words[3]);
  const auto guest_port = parse_int(words[5]);
  if (!host_port || !guest_port) return std::nullopt;
  return HostForward{static_cast<std::int32_t>(*host_port), static_cast<std::int32_t>(*guest_port)};
}

Result<std::vector<HostForward>> read_forwards(QmpClient& qmp) {
  const auto text = qmp.human("info usernet");
  if (!text) return text.error();
  return parse_usernet(*text);
}

std::optional<std::int32_t> host_port_of(const std::vector<HostForward>& forwards,
                                         std::int32_t guest_port) {
  const auto found = std::ranges::find(forwards, guest_port, &HostForward::guest_port);
  if (found == forwards.end()) return std::nullopt;
  return found->host_port;
}

// Has QEMU forward `host_port`, 0 being any, unless it forwards to the guest's port
// already; conflict when it cannot.
Result<std::int32_t> forward_to(QmpClient& qmp, const std::string& bind, std::int32_t host_port,
                                std::int32_t guest_port) {
  auto forwards = read_forwards(qmp);
  if (!forwards) return forwards.error();
  if (const auto port = host_port_of(*forwards, guest_port)) return *port;
  const auto said =
      qmp.human(cat("hostfwd_add ", net_id, " tcp:", bind, ":", host_port, "-:", guest_port));
  if (!said) return said.error();
  forwards = read_forwards(qmp);
  if (!forwards) return forwards.error();
  if (const auto port = host_port_of(*forwards, guest_port)) return *port;
  return Error{ErrorCode::conflict,
               cat("QEMU does not forward port ", guest_port, ": ", trim(*said))};
}

Endpoint endpoint_at(const PortPlan& ports, std::string as, std::int32_t port,
                     std::int32_t host_port) {
  return {.as = std::move(as),
          .url = authority_of(ports.public_host, host_port),
          .port = port,
          .host_port = host_port};
}

}  // namespace

std::vector<HostForward> parse_usernet(std::string_view text) {
  std::vector<HostForward> forwards;
  for (const std::string& line : split(text, '\n')) {
    if (const auto forward = forward_in(line)) forwards.push_back(*forward);
  }
  return forwards;
}

Result<std::vector<Endpoint>> expose_ports(QmpClient& qmp, const PortPlan& ports,
                                           std::span<const ExposeSpec> wanted) {
  std::vector<Endpoint> endpoints;
  for (const ExposeSpec& port : wanted) {
    if (port.port < 1 || port.port > 65535) {
      return Error{ErrorCode::invalid_argument, cat("port ", port.port, " cannot be exposed")};
    }
    const auto host_port = forward_to(qmp, ports.bind, 0, port.port);
    if (!host_port) return in_context(cat("expose port ", port.port), host_port.error());
    endpoints.push_back(endpoint_at(ports, port.as, port.port, *host_port));
  }
  return endpoints;
}

Result<Endpoint> publish_guest(QmpClient& qmp, const PortPlan& ports) {
  constexpr std::int32_t last = 65535;
  Error problem{ErrorCode::unavailable, cat("no port above ", ports.vm_port_base, " is free")};
  // QEMU's attempt is what takes a port, so there is no race for it.
  for (std::int32_t port = ports.vm_port_base + 1; port <= last; ++port) {
    const auto taken = forward_to(qmp, ports.bind, port, ports.guest_port);
    if (taken) return endpoint_at(ports, "", ports.guest_port, *taken);
    if (taken.error().code != ErrorCode::conflict) return taken.error();
    problem.message =
        cat("no port above ", ports.vm_port_base, " is free: ", taken.error().message);
  }
  return problem;
}

std::string net_text(std::span<const Endpoint> endpoints) {
  ordered_json list = ordered_json::array();
  for (const Endpoint& endpoint : endpoints) {
    list.push_back({{"as", endpoint.as},
                    {"url", endpoint.url},
                    {"port", endpoint.port},
                    {"host_port", endpoint.host_port}});
  }
  return ordered_json{{"endpoints", list}}.dump(2, ' ', false,
                                                ordered_json::error_handler_t::replace) +
         "\n";
}

Result<std::vector<Endpoint>> parse_net(std::string_view text) {
  const auto parsed = parse_json(text);
  if (!parsed) return parsed.error();
  JsonReader fields(*parsed, "");
  std::vector<Endpoint> endpoints;
  for (const json* element : fields.elements("endpoints")) {
    JsonReader one(*element, "endpoints");
    endpoints.push_back(
        {.as = one.text("as").value_or(""),
         .url = one.text("url").value_or(""),
         .port = static_cast<std::int32_t>(one.integer("port").value_or(0)),
         .host_port = static_cast<std::int32_t>(one.integer("host_port").value_or(0))});
    if (auto done = one.finish(); !done) return done.error();
  }
  if (auto done = fields.finish(); !done) return done.error();
  return endpoints;
}

}  // namespace fuse
