#include "orchestrator/guest_credentials.h"

#include "base/certificate.h"
#include "base/ids.h"

namespace fuse {

Result<std::vector<UploadFile>> make_guest_credentials(const std::string& vm_name, WallTime now) {
  constexpr std::size_t longest_name = 64;
  auto made = make_self_signed({.common_name = vm_name.substr(0, longest_name),
                                .ip_addresses = {"127.0.0.1", "0.0.0.0"},
                                .from = now,
                                .lifetime = std::chrono::hours(24 * 7)});
  if (!made) return made.error();
  return std::vector<UploadFile>{
      {.path = "/fuse/tls/cert.pem", .bytes = std::move(made->certificate)},
      {.path = "/fuse/tls/key.pem", .bytes = std::move(made->key)},
      {.path = "/fuse/auth-token", .bytes = random_hex(32)}};
}

}  // namespace fuse
