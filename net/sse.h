#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fuse {

// A server-sent event: what stands in its `id:` and `data:` lines.
struct SseEvent {
  std::string id{};
  std::string data{};
};

// "id: ...\ndata: ...\n\n".  Neither may hold a line end.  Without an id there
// is no id line.
std::string encode_sse(const SseEvent& event);
// ": keepalive\n\n".
std::string_view sse_keepalive();

// Takes a stream in pieces of any size.  Several data lines of one event are
// put together without anything between them; comments and other fields are
// skipped; lines end with LF, CRLF or CR.  An event without data is none.
class SseParser {
 public:
  static constexpr std::size_t most_event = 1U << 20U;

  // The events that these bytes complete.  payload_too_large once an event
  // grows beyond 1 MiB; the parser is then of no more use.
  Result<std::vector<SseEvent>> feed(std::string_view bytes);
  // The id seen last, kept across events: what to send as Last-Event-ID.
  [[nodiscard]] const std::string& last_id() const { return last_id_; }

 private:
  Result<void> take_line(std::vector<SseEvent>& events);

  std::string line_{};
  std::string last_id_{};
  SseEvent event_{};
  bool has_data_ = false;
  bool after_cr_ = false;
};

}  // namespace fuse
