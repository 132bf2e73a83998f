#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/host.h"

namespace fuse {

// SHA-256, fed piece by piece.
class Sha256 {
 public:
  Sha256();
  void update(std::string_view bytes);
  // Lower-case hex.  Call once.
  [[nodiscard]] std::string finish();

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

std::string sha256_hex(std::string_view bytes);
Result<std::string> sha256_of_file(const fs::path& file);

// AES-256-GCM with a 32-byte key.  The sealed form is nonce (12) + cipher text
// + tag (16); `context` is authenticated with it, so that a value cannot be
// moved to another row.  Opening fails with unauthorized when key, context or
// bytes are not those it was sealed with.
std::string seal(std::string_view key, std::string_view context, std::string_view plain);
Result<std::string> open_sealed(std::string_view key, std::string_view context,
                                std::string_view sealed);

// Same length and bytes, in time that depends on the length alone.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace fuse
