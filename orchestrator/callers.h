#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/http.h"
#include "orchestrator/api/key_api.h"
#include "orchestrator/store.h"

namespace fuse {

// Addresses of one prefix: "10.0.0.0/8", "2001:db8::/32", or a single address.
class AddressRange {
 public:
  static Result<AddressRange> parse(const std::string& text);
  // Also of an IPv4 address written as IPv6 (::ffff:10.0.0.1).
  [[nodiscard]] bool contains(const std::string& address) const;

 private:
  std::string prefix_{};  // the address, 4 or 16 bytes
  std::size_t bits_ = 0;
};

struct CallerRules {
  std::string master_token{};           // empty: every caller is trusted
  std::vector<AddressRange> allowed{};  // empty: every address
  bool secure_cookies = false;          // also where the connection is not TLS
};

// Who calls, as far as that matters.
enum class Caller {
  key,     // holds an API key
  master,  // holds the master token
};

// Tells callers apart by token and cookie, and keeps the keys.  Safe from several
// threads.
class Callers final : public ApiKeyApi {
 public:
  Callers(Store& store, Clock& clock, CallerRules rules)
      : store_(store), clock_(clock), rules_(std::move(rules)) {}

  // forbidden for an address outside the allowed ones.
  [[nodiscard]] Result<void> check_address(const HttpRequest& request) const;
  // unauthorized `missing or malformed credentials` or `invalid token`.
  Result<Caller> identify(const HttpRequest& request);

  // The cookie of a new session, as Set-Cookie has it; "" when no token is
  // configured.  unauthorized for a wrong token.
  Result<std::string> sign_in(const HttpRequest& request, const std::string& token);
  // The cookie that ends the caller's session in the browser; here it ends at once.
  Result<std::string> sign_out(const HttpRequest& request);

  Result<NewApiKey> create_key(const std::string& label) override;
  Result<std::vector<ApiKey>> list_keys() override;
  Result<void> revoke_key(const std::string& id) override;

 private:
  struct Holder {
    Caller caller = Caller::key;
    std::string key_id{};
  };
  Result<Holder> holder_of_token(const std::string& token);
  Result<Caller> holder_of_cookie(const std::string& cookie);
  [[nodiscard]] std::string token_mark() const;
  [[nodiscard]] std::string cookie_attributes(const HttpRequest& request) const;

  Store& store_;
  Clock& clock_;
  CallerRules rules_;
};

}  // namespace fuse
