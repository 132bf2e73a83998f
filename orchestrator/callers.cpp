#include "orchestrator/callers.h"

#include <algorithm>

#include "base/crypto.h"
#include "base/ids.h"
#include "base/text.h"

namespace fuse {

namespace {

constexpr std::string_view bearer = "Bearer ";
constexpr std::string_view cookie_name = "fuse_session";
constexpr std::size_t secret_bytes = 32;
constexpr std::chrono::hours session_length{24 * 7};
constexpr std::chrono::minutes between_notes{1};  // of a key's last use

Error unauthorized(std::string message) {
  return {ErrorCode::unauthorized, std::move(message)};
}

// base64url without padding.
std::string url_text(std::string_view bytes) {
  std::string text = base64_encode(bytes);
  while (text.ends_with('=')) text.pop_back();
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

std::string cookie_of(const HttpRequest& request) {
  for (const std::string& header : request.headers.all("Cookie")) {
    for (const std::string& pair : split(header, ';')) {
      const std::string_view cookie = trim(pair);
      if (cookie.starts_with(cookie_name) && cookie.substr(cookie_name.size()).starts_with('=')) {
        return std::string(cookie.substr(cookie_name.size() + 1));
      }
    }
  }
  return "";
}

ApiKey key_of(const ApiKeyRow& row) {
  const auto text = [](const std::optional<WallTime>& time) {
    return time ? to_rfc3339(*time) : std::string();
  };
  return {.id = row.id,
          .label = row.label,
          .created_at = to_rfc3339(row.created),
          .last_used_at = text(row.last_used),
          .revoked_at = text(row.revoked)};
}

}  // namespace

Result<void> Callers::check_address(const HttpRequest& request) const {
  if (rules_.allowed.empty()) return {};
  const bool inside = std::ranges::any_of(
      rules_.allowed, [&](const AddressRange& range) { return range.contains(request.peer.ip); });
  if (inside) return {};
  return Error{ErrorCode::forbidden, "source address not in allowlist"};
}

Result<Callers::Holder> Callers::holder_of_token(const std::string& token) {
  // Both sides are hashed so that their lengths tell nothing either.
  const std::string hash = sha256_hex(token);
  if (equal_in_constant_time(hash, sha256_hex(rules_.master_token))) {
    return Holder{.caller = Caller::master};
  }
  const WallTime now = clock_.wall();
  return transact<Holder>(store_, [&](StoreTx& tx) -> Result<Holder> {
    const auto key = tx.credentials.key_by_hash(hash);
    if (!key) return key.error();
    if (!*key || (*key)->revoked) return unauthorized("invalid token");
    const auto& used = (*key)->last_used;
    if (!used || now - *used >= between_notes) {
      if (auto done = tx.credentials.note_use((*key)->id, now); !done) return done.error();
    }
    return Holder{.caller = Caller::key, .key_id = (*key)->id};
  });
}

// A session is bound to the token it was begun with: a new one ends it.
std::string Callers::token_mark() const {
  return sha256_hex(cat("session of ", rules_.master_token)).substr(0, secret_bytes);
}

Result<Caller> Callers::holder_of_cookie(const std::string& cookie) {
  const std::string hash = sha256_hex(cookie);
  return transact<Caller>(store_, [&](StoreTx& tx) -> Result<Caller> {
    const auto session = tx.credentials.session(hash);
    if (!session) return session.error();
    const bool good =
        *session && (*session)->expires > clock_.wall() && (*session)->token_mark == token_mark();
    if (!good) return unauthorized("invalid token");
    if ((*session)->key_id.empty()) return Caller::master;
    const auto key = tx.credentials.key_by_id((*session)->key_id);
    if (!key) return key.error();
    if (!*key || (*key)->revoked) return unauthorized("invalid token");
    return Caller::key;
  });
}

Result<Caller> Callers::identify(const HttpRequest& request) {
  if (rules_.master_token.empty()) return Caller::master;
  if (const auto given = request.headers.get("Authorization")) {
    const bool well_formed = given->starts_with(bearer) && given->size() > bearer.size();
    if (!well_formed) return unauthorized("missing or malformed credentials");
    const auto holder = holder_of_token(given->substr(bearer.size()));
    if (!holder) return holder.error();
    return holder->caller;
  }
  const std::string cookie = cookie_of(request);
  if (cookie.empty()) return unauthorized("missing or malformed credentials");
  return holder_of_cookie(cookie);
}

std::string Callers::cookie_attributes(const HttpRequest& request) const {
  const bool secure = request.peer.tls || rules_.secure_cookies;
  return cat("; Path=/; HttpOnly; SameSite=Lax", secure ? "; Secure" : "");
}

Result<std::string> Callers::sign_in(const HttpRequest& request, const std::string& token) {
  if (rules_.master_token.empty()) return std::string();
  const auto holder = holder_of_token(token);
  if (!holder) return holder.error();
  const std::string secret = url_text(random_bytes(secret_bytes));
  const WallTime now = clock_.wall();
  auto kept = store_.run([&](StoreTx& tx) -> Result<void> {
    if (auto done = tx.credentials.remove_sessions_before(now); !done) return done;
    return tx.credentials.insert_session({.hash = sha256_hex(secret),
                                          .key_id = holder->key_id,
                                          .token_mark = token_mark(),
                                          .expires = now + session_length});
  });
  if (!kept) return kept.error();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(session_length).count();
  return cat(cookie_name, '=', secret, "; Max-Age=", seconds, cookie_attributes(request));
}

Result<std::string> Callers::sign_out(const HttpRequest& request) {
  const std::string cookie = cookie_of(request);
  if (!cookie.empty()) {
    const std::string hash = sha256_hex(cookie);
    auto ended = store_.run([&](StoreTx& tx) { return tx.credentials.end_session(hash); });
    if (!ended) return ended.error();
  }
  return cat(cookie_name, "=; Max-Age=0", cookie_attributes(request));
}

Result<NewApiKey> Callers::create_key(const std::string& label) {
  const std::string secret = cat("fuse_sk_", url_text(random_bytes(secret_bytes)));
  const ApiKeyRow row{.id = cat("ak_", random_hex(8)),
                      .hash = sha256_hex(secret),
                      .label = label,
                      .created = clock_.wall()};
  auto kept = store_.run([&](StoreTx& tx) { return tx.credentials.insert_key(row); });
  if (!kept) return kept.error();
  return NewApiKey{.key = key_of(row), .secret = secret};
}

Result<std::vector<ApiKey>> Callers::list_keys() {
  const auto rows =
      transact<std::vector<ApiKeyRow>>(store_, [](StoreTx& tx) { return tx.credentials.keys(); });
  if (!rows) return rows.error();
  std::vector<ApiKey> out;
  for (const ApiKeyRow& row : *rows) out.push_back(key_of(row));
  return out;
}

Result<void> Callers::revoke_key(const std::string& id) {
  return store_.run([&](StoreTx& tx) -> Result<void> {
    const auto key = tx.credentials.key_by_id(id);
    if (!key) return key.error();
    if (!*key) return Error{ErrorCode::not_found, cat("api key not found: ", id)};
    return tx.credentials.revoke(id, clock_.wall());
  });
}

}  // namespace fuse
