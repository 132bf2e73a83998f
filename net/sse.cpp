#include "net/sse.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/text.h"

namespace fuse {

namespace {

Error too_large() {
  return {ErrorCode::payload_too_large, "an event of the stream is larger than 1 MiB"};
}

}  // namespace

std::string encode_sse(const SseEvent& event) {
  assert(event.id.find_first_of("\r\n") == std::string::npos);
  assert(event.data.find_first_of("\r\n") == std::string::npos);
  const std::string id = event.id.empty() ? "" : cat("id: ", event.id, "\n");
  return cat(id, "data: ", event.data, "\n\n");
}

std::string_view sse_keepalive() {
  return ": keepalive\n\n";
}

Result<std::vector<SseEvent>> SseParser::feed(std::string_view bytes) {
  constexpr std::size_t most_line = most_event + 64;  // a field's name stands before it
  std::vector<SseEvent> events;
  while (!bytes.empty()) {
    const bool second_of_crlf = std::exchange(after_cr_, false) && bytes.front() == '\n';
    if (second_of_crlf) bytes.remove_prefix(1);
    const std::size_t end = bytes.find_first_of("\r\n");
    const std::string_view piece = bytes.substr(0, end);
    if (line_.size() + piece.size() > most_line) return too_large();
    line_ += piece;
    if (end == std::string_view::npos) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (auto taken = take_line(events); !taken) return taken.error();
  }
  return events;
}

Result<void> SseParser::take_line(std::vector<SseEvent>& events) {
  const std::string line = std::exchange(line_, {});
  if (line.empty()) {
    if (has_data_) events.push_back(event_);
    event_.data.clear();
    event_.id.clear();
    has_data_ = false;
    return {};
  }
  const std::size_t colon = std::min(line.find(':'), line.size());
  const std::string_view field = std::string_view(line).substr(0, colon);
  std::string_view value = std::string_view(line).substr(std::min(colon + 1, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "id") {
    event_.id = value;
    last_id_ = value;
  } else if (field == "data") {
    if (event_.data.size() + value.size() > most_event) {
      return too_large();
    }
    event_.data += value;
    has_data_ = true;
  }
  return {};
}

}  // namespace fuse
