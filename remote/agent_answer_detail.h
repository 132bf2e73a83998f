#pragma once

#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "remote/agent_wire.h"

// Shared by the files that read a host agent's answers; private to this folder.
namespace fuse {

// The JSON of an answer, read with `parse`.
template <class T>
Result<T> parsed_answer(const AgentWire& wire, const HttpReply& reply,
                        Result<T> (*parse)(const nlohmann::json&)) {
  const auto json = parse_json(reply.body);
  if (!json) return not_understood(wire, json.error());
  auto value = parse(*json);
  if (!value) return not_understood(wire, value.error());
  return value;
}

}  // namespace fuse
