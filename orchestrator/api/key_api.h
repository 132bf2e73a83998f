#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace fuse {

struct ApiKey {
  std::string id{};  // "ak_" and 16 hex digits
  std::string label{};
  std::string created_at{};
  std::string last_used_at{};
  std::string revoked_at{};
};

struct NewApiKey {
  ApiKey key{};
  std::string secret{};  // "fuse_sk_" and 43 characters; shown this once
};

// The keys that callers other than the holder of the master token use.
class ApiKeyApi {
 public:
  virtual ~ApiKeyApi() = default;
  virtual Result<NewApiKey> create_key(const std::string& label) = 0;
  virtual Result<std::vector<ApiKey>> list_keys() = 0;  // newest first
  // Also of one that is revoked already.
  virtual Result<void> revoke_key(const std::string& id) = 0;
};

}  // namespace fuse
