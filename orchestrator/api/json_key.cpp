#include <nlohmann/json.hpp>

#include "orchestrator/api/json.h"
#include "orchestrator/api/json_detail.h"

namespace fuse {

using json_detail::objects_in;
using json_detail::put;
using json_detail::read_all;
using nlohmann::json;
using Json = nlohmann::ordered_json;

namespace {

ApiKey read_key(JsonReader& reader) {
  return {.id = reader.text("id").value_or(""),
          .label = reader.text("label").value_or(""),
          .created_at = reader.text("created_at").value_or(""),
          .last_used_at = reader.text("last_used_at").value_or(""),
          .revoked_at = reader.text("revoked_at").value_or("")};
}

Json key_json(const ApiKey& key) {
  Json out = {{"id", key.id}};
  put(out, "label", key.label);
  out["created_at"] = key.created_at;
  put(out, "last_used_at", key.last_used_at);
  put(out, "revoked_at", key.revoked_at);
  return out;
}

}  // namespace

Json to_json(const NewApiKey& key) {
  Json out = key_json(key.key);
  out["key"] = key.secret;
  return out;
}

Json to_json(const std::vector<ApiKey>& keys) {
  Json list = Json::array();
  for (const ApiKey& key : keys) list.push_back(key_json(key));
  return {{"api_keys", std::move(list)}};
}

Result<NewApiKey> parse_new_api_key(const json& value) {
  return read_all<NewApiKey>(value, "", [](JsonReader& reader) {
    return NewApiKey{.key = read_key(reader), .secret = reader.text("key").value_or("")};
  });
}

Result<std::vector<ApiKey>> parse_api_keys(const json& value) {
  return read_all<std::vector<ApiKey>>(value, "", [](JsonReader& reader) {
    return objects_in<ApiKey>(reader, "api_keys", read_key);
  });
}

}  // namespace fuse
