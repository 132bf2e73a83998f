#include "orchestrator/json_text.h"

#include <nlohmann/json.hpp>

namespace fuse {

std::string json_text(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace fuse
