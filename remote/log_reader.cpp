#include "remote/log_reader.h"

#include <utility>

#include "base/text.h"
#include "net/url.h"
#include "orchestrator/api/agent_json.h"

namespace fuse {

std::string LogReader::target() const {
  Query parameters;
  if (range_) {
    parameters.add("offset", cat(range_->end));
  } else if (query_.tail) {
    parameters.add("tail", cat(*query_.tail));
  } else {
    parameters.add("offset", cat(query_.offset));
  }
  if (query_.follow) parameters.add("follow", "1");
  return cat(route_, "?", parameters.encode());
}

bool LogReader::take(std::string_view bytes) {
  received_ += bytes.size();
  refused_ = !sink_(bytes);
  return !refused_;
}

std::uint64_t LogReader::settle(const HttpReply& head) {
  // Where the answer begins, when it does not begin where it was asked to.
  const auto told = parse_int(head.headers.get(log_offset_header).value_or(""));
  hole_ = {};
  if (!range_) {
    std::uint64_t begin = query_.tail ? 0 : query_.offset;
    if (told && *told >= 0) begin = static_cast<std::uint64_t>(*told);
    range_ = LogRange{begin, begin};
  } else if (told && *told > 0 && static_cast<std::uint64_t>(*told) > range_->end) {
    hole_ = {range_->end, static_cast<std::uint64_t>(*told)};
    range_->end = hole_.end;
  }
  range_->end += received_;
  return std::exchange(received_, 0);
}

}  // namespace fuse
