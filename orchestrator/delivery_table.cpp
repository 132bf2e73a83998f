#include <nlohmann/json.hpp>

#include "base/crypto.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "orchestrator/api/json.h"
#include "orchestrator/json_text.h"
#include "orchestrator/tables.h"

namespace fuse {

namespace {

// What a sealed value is bound to: moved to another row it does not open.
std::string request_context(const std::string& uid) {
  return cat("request ", uid);
}
std::string secret_context(const std::string& uid, const std::string& name) {
  return cat("secret ", uid, ' ', name);
}

}  // namespace

Result<void> DeliveryTable::insert(const std::string& uid,
                                   const CreateEnvironmentRequest& request) {
  CreateEnvironmentRequest rest = request;
  rest.secrets.clear();
  auto done =
      sql_.execute("INSERT INTO requests (environment_uid, sealed) VALUES ($1, $2)",
                   {uid, SqlBlob{seal(key_, request_context(uid), json_text(to_json(rest)))}});
  if (!done) return done.error();
  for (const auto& [name, value] : request.secrets) {
    auto kept =
        sql_.execute("INSERT INTO secrets (environment_uid, name, sealed) VALUES ($1, $2, $3)",
                     {uid, name, SqlBlob{seal(key_, secret_context(uid, name), value)}});
    if (!kept) return kept.error();
  }
  return {};
}

Result<std::optional<CreateEnvironmentRequest>> DeliveryTable::read(const std::string& uid) {
  const auto rows = sql_.query("SELECT sealed FROM requests WHERE environment_uid = $1", {uid});
  if (!rows) return rows.error();
  if (rows->empty()) return std::optional<CreateEnvironmentRequest>();
  const auto text = open_sealed(key_, request_context(uid), rows->front().bytes("sealed"));
  if (!text) return in_context("the request of an environment", text.error());
  const auto body = parse_json(*text);
  if (!body) return body.error();
  auto request = parse_create_request(*body);
  if (!request) return request.error();
  const auto secrets =
      sql_.query("SELECT name, sealed FROM secrets WHERE environment_uid = $1", {uid});
  if (!secrets) return secrets.error();
  for (const SqlRow& row : *secrets) {
    const std::string name = row.text("name");
    auto value = open_sealed(key_, secret_context(uid, name), row.bytes("sealed"));
    if (!value) return in_context(cat("secret ", name), value.error());
    request->secrets[name] = *std::move(value);
  }
  return std::optional<CreateEnvironmentRequest>(*std::move(request));
}

Result<void> DeliveryTable::erase(const std::string& uid) {
  for (const std::string_view sql : {"DELETE FROM requests WHERE environment_uid = $1",
                                     "DELETE FROM secrets WHERE environment_uid = $1"}) {
    if (auto done = sql_.execute(sql, {uid}); !done) return done.error();
  }
  return {};
}

}  // namespace fuse
