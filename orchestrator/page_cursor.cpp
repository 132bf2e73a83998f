#include "orchestrator/page_cursor.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/text.h"
#include "orchestrator/json_text.h"

namespace fuse {

namespace {

// The alphabet that needs no escaping in a query, without padding.
std::string to_url_alphabet(std::string text) {
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  while (!text.empty() && text.back() == '=') text.pop_back();
  return text;
}

std::string from_url_alphabet(std::string text) {
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  text.append((4 - text.size() % 4) % 4, '=');
  return text;
}

}  // namespace

std::string encode_cursor(const EnvironmentTable::Position& position) {
  return to_url_alphabet(base64_encode(json_text({{"id", position.id}, {"uid", position.uid}})));
}

Result<EnvironmentTable::Position> decode_cursor(const std::string& cursor) {
  if (cursor.empty()) return EnvironmentTable::Position{};
  const Error refusal{ErrorCode::invalid_argument, "invalid pagination cursor"};
  const auto text = base64_decode(from_url_alphabet(cursor));
  if (!text) return refusal;
  const auto value = parse_json(*text);
  if (!value || !value->is_object()) return refusal;
  JsonReader reader(*value, "");
  EnvironmentTable::Position position{.id = reader.text("id").value_or(""),
                                      .uid = reader.text("uid").value_or("")};
  if (!reader.finish()) return refusal;
  return position;
}

std::int64_t page_size(std::int64_t limit) {
  constexpr std::int64_t usual = 50;
  constexpr std::int64_t most = 200;
  return limit < 1 ? usual : std::min(limit, most);
}

}  // namespace fuse
