#include "orchestrator/guest_credentials.h"

#include "base/certificate.h"
#include "base/ids.h"
#include "orchestrator/api/agent_json.h"

namespace fuse {

Result<std::vector<UploadFile>> make_guest_credentials(const std::string& vm_name, WallTime now) {
  auto made = make_self_signed({.common_name = vm_name.substr(0, longest_common_name),
                                .ip_addresses = {"127.0.0.1", "0.0.0.0"},
                                .from = now,
                                .lifetime = std::chrono::hours(24 * 7)});
  if (!made) return made.error();
  return std::vector<UploadFile>{
      {.path = std::string(tls_cert_path), .bytes = std::move(made->certificate)},
      {.path = std::string(tls_key_path), .bytes = std::move(made->key)},
      {.path = "/fuse/auth-token", .bytes = random_hex(32)}};
}

}  // namespace fuse
