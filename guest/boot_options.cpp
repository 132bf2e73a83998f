#include "guest/boot_options.h"

#include <arpa/inet.h>

#include <vector>

#include "base/text.h"

namespace fuse {

namespace {

bool is_ipv4(const std::string& text) {
  in_addr address{};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1;
}

// What QEMU's user network gives its only guest.
NetworkOptions user_network() {
  return {.address = "10.0.2.15", .prefix = 24, .gateway = "10.0.2.2", .dns = "10.0.2.3"};
}

Result<std::optional<NetworkOptions>> parse_network(const std::string& text) {
  if (text.empty() || text == "none") return std::optional<NetworkOptions>();
  if (text == "user") return std::optional(user_network());
  const Error wrong{ErrorCode::invalid_argument,
                    cat("fuse.net=", text, " is not ADDRESS/PREFIX,GATEWAY,DNS")};
  const auto parts = split(text, ',');
  const auto address = split(parts[0], '/');
  if (parts.size() > 3 || address.size() != 2) return wrong;
  const auto prefix = parse_int(address[1]);
  if (!is_ipv4(address[0]) || !prefix || *prefix < 1 || *prefix > 32) return wrong;
  NetworkOptions network{.address = address[0], .prefix = static_cast<std::int32_t>(*prefix)};
  if (parts.size() > 1) network.gateway = parts[1];
  if (parts.size() > 2) network.dns = parts[2];
  for (const std::string& other : {network.gateway, network.dns}) {
    if (!other.empty() && !is_ipv4(other)) return wrong;
  }
  return std::optional(network);
}

}  // namespace

Result<BootOptions> parse_boot_options(std::string_view command_line) {
  BootOptions options;
  for (const std::string& word : split(trim(command_line), ' ')) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = word.substr(0, equals);
    const std::string value = word.substr(equals + 1);
    if (name == "fuse.host") options.hostname = value;
    if (name == "fuse.root") options.root = value;
    if (name == "fuse.init") options.init = value;
    if (name != "fuse.net") continue;
    auto network = parse_network(value);
    if (!network) return network.error();
    options.network = *std::move(network);
  }
  return options;
}

}  // namespace fuse
