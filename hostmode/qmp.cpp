#include "hostmode/qmp.h"

#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/text.h"

namespace fuse {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

Error not_a_message(std::string_view why) {
  return {ErrorCode::internal, cat("QEMU's monitor said something that is no message: ", why)};
}

}  // namespace

Result<QmpMessage> parse_qmp_message(std::string_view line) {
  const auto parsed = parse_json(line);
  if (!parsed) return not_a_message(parsed.error().message);
  JsonReader fields(*parsed, "");
  QmpMessage message;
  if (fields.has("id")) message.id = fields.integer("id").value_or(0);
  if (fields.has("QMP")) {
    message.kind = QmpMessage::Kind::greeting;
    (void)fields.object("QMP");
  } else if (parsed->is_object() && parsed->contains("return")) {
    message.kind = QmpMessage::Kind::result;
    message.value = text_of((*parsed)["return"]);
  } else if (const json* error = fields.object("error")) {
    message.kind = QmpMessage::Kind::failure;
    JsonReader inner(*error, "error");
    message.name = inner.text("class").value_or("");
    message.description = inner.text("desc").value_or("");
    if (auto done = inner.finish(); !done) return not_a_message(done.error().message);
  } else if (const auto event = fields.text("event")) {
    message.kind = QmpMessage::Kind::event;
    message.name = *event;
    const json* data = fields.object("data");
    message.value = data == nullptr ? "{}" : text_of(*data);
  } else {
    fields.complain("event", "is missing");
  }
  if (auto done = fields.finish(); !done) return not_a_message(done.error().message);
  return message;
}

std::string qmp_command(std::string_view name, const ordered_json& arguments, std::int64_t id) {
  ordered_json command = {{"execute", name}};
  if (!arguments.empty()) command["arguments"] = arguments;
  command["id"] = id;
  return command.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<std::optional<std::string>> QmpLines::next() {
  while (true) {
    const std::size_t end = pending_.find('\n');
    if ((end == std::string::npos ? pending_.size() : end) > most_) {
      return Error{ErrorCode::internal,
                   cat("QEMU's monitor sent a line of over ", most_, " bytes")};
    }
    if (end == std::string::npos) return std::optional<std::string>();
    std::string line(trim(std::string_view(pending_).substr(0, end)));
    pending_.erase(0, end + 1);
    if (!line.empty()) return std::optional(std::move(line));
  }
}

}  // namespace fuse
