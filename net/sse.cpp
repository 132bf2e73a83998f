#include "net/sse.h"

#include <cassert>
#include <utility>

#include "base/text.h"

namespace fuse {

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
  std::vector<SseEvent> events;
  for (const char c : bytes) {
    const bool second_of_crlf = std::exchange(after_cr_, c == '\r') && c == '\n';
    if (second_of_crlf) continue;
    if (c == '\n' || c == '\r') {
      if (auto taken = take_line(events); !taken) return taken.error();
    } else if (line_.size() < most_event + 64) {  // a field name and the blank behind it
      line_ += c;
    } else {
      return Error{ErrorCode::payload_too_large, "an event of the stream is larger than 1 MiB"};
    }
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
      return Error{ErrorCode::payload_too_large, "an event of the stream is larger than 1 MiB"};
    }
    event_.data += value;
    has_data_ = true;
  }
  return {};
}

}  // namespace fuse
