#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/http_client.h"
#include "orchestrator/api/host_api.h"
#include "orchestrator/api/key_api.h"

namespace fuse {

// The orchestrator's hosts and API keys over HTTP.  An answer that is an error
// becomes the Error it carries; no answer is `unreachable` and names the place.
class RemoteFleet final : public HostApi, public ApiKeyApi {
 public:
  explicit RemoteFleet(std::unique_ptr<HttpClient> http) : http_(std::move(http)) {}

  Result<HostInfo> register_host(const RegisterHostRequest& request) override;
  Result<HostPage> list_hosts(std::int64_t limit, const std::string& cursor) override;
  Result<HostInfo> get_host(const std::string& id) override;
  Result<void> change_host(const std::string& id, HostAction action) override;
  Result<void> remove_host(const std::string& id) override;
  // unimplemented where the orchestrator cannot explain.
  Result<Explanation> explain(const ResourceSpec& spec) override;

  Result<NewApiKey> create_key(const std::string& label) override;
  Result<std::vector<ApiKey>> list_keys() override;
  Result<void> revoke_key(const std::string& id) override;

  // What is there: GET /v1/version and /ready.
  struct Service {
    std::string service{};  // "fuse-orchestrator"
    std::string version{};
  };
  Result<Service> service();
  // The text of GET /metrics.
  Result<std::string> metrics();

 private:
  std::unique_ptr<HttpClient> http_;
};

}  // namespace fuse
