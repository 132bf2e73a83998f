#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

// QEMU's monitor protocol as values: one JSON object a line, both ways.
namespace fuse {

// One message from QEMU.  Which fields mean something depends on `kind`.
struct QmpMessage {
  enum class Kind { greeting, result, failure, event };
  Kind kind = Kind::event;
  std::int64_t id = 0;        // result, failure: of the command it answers; 0 when it has none
  std::string value{};        // result: "return"; event: "data"; both as JSON text
  std::string name{};         // event: its name; failure: its class
  std::string description{};  // failure: QEMU's own words
};

// internal when `line` is not a message.
Result<QmpMessage> parse_qmp_message(std::string_view line);

// A command line, newline included.
std::string qmp_command(std::string_view name, const nlohmann::ordered_json& arguments,
                        std::int64_t id);

// Cuts a byte stream into lines.  One longer than `most` bytes is an error, and
// nothing more comes after it.
class QmpLines {
 public:
  explicit QmpLines(std::size_t most = std::size_t{4} << 20U) : most_(most) {}

  void feed(std::string_view bytes) { pending_ += bytes; }
  // The next whole line without its end, or nothing yet.  Blank lines are skipped.
  Result<std::optional<std::string>> next();

 private:
  std::size_t most_;
  std::string pending_;
};

}  // namespace fuse
