#include "orchestrator/api/attach_payloads.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"

namespace fuse {

std::string encode_resize(const TerminalSize& size) {
  return nlohmann::ordered_json{{"rows", size.rows}, {"cols", size.cols}}.dump();
}

std::optional<TerminalSize> parse_resize(std::string_view payload) {
  const auto json = parse_json(payload);
  if (!json) return std::nullopt;
  JsonReader reader(*json, "");
  const auto rows = reader.integer("rows");
  const auto cols = reader.integer("cols");
  if (!rows || !cols || *rows <= 0 || *cols <= 0) return std::nullopt;
  constexpr std::int64_t most = 65535;
  return TerminalSize{static_cast<std::int32_t>(std::min(*rows, most)),
                      static_cast<std::int32_t>(std::min(*cols, most))};
}

std::string encode_exit(int exit_code) {
  return nlohmann::ordered_json{{"exit_code", exit_code}}.dump();
}

std::optional<int> parse_exit(std::string_view payload) {
  const auto json = parse_json(payload);
  if (!json) return std::nullopt;
  JsonReader reader(*json, "");
  const auto code = reader.integer("exit_code");
  if (!code || *code < std::numeric_limits<int>::min() || *code > std::numeric_limits<int>::max()) {
    return std::nullopt;
  }
  return static_cast<int>(*code);
}

}  // namespace fuse
