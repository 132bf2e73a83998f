#include "net/httplib_stream_detail.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

namespace fuse {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::string_view line_end = "\r\n";
constexpr std::string_view blank_line = "\r\n\r\n";
constexpr std::size_t most_unsent = 64U << 10U;
constexpr std::size_t most_status_line = 1000;    // to httplib's regular expression, which recurses
constexpr std::size_t worth_sending = 4U << 10U;  // without waiting for more

bool has_name(std::string_view line, std::string_view name) {
  return line.size() > name.size() && line[name.size()] == ':' &&
         equal_ignoring_case(line.substr(0, name.size()), name);
}

// httplib percent-decodes the values of all fields but two.  To us a value is
// bytes, so that a per cent sign is handed over encoded.
std::string with_literal_values(std::string_view head) {
  std::string out;
  out.reserve(head.size());
  bool literal = true;  // the first line is
  while (!head.empty()) {
    const std::size_t size = std::min(head.find(line_end), head.size() - line_end.size());
    const std::string_view line = head.substr(0, size + line_end.size());
    head.remove_prefix(line.size());
    for (const char c : line) {
      out += c;
      if (c == '%' && !literal) out += "25";
    }
    literal = has_name(head, "Location") || has_name(head, "Referer");
  }
  return out;
}

}  // namespace

milliseconds HttplibStream::patience() const {
  if (deadline_ == steady_clock::time_point::max()) return stall_;
  const auto left = std::chrono::ceil<milliseconds>(deadline_ - steady_clock::now());
  return std::clamp(left, milliseconds(0), stall_);
}

HttplibStream::Input HttplibStream::fill() {
  const auto got = socket_.fill(patience());
  if (!got) return Input::broken;
  switch (got->kind) {
    case ReadOutcome::Kind::bytes:
      return Input::ready;
    case ReadOutcome::Kind::end:
      return Input::end;
    case ReadOutcome::Kind::timed_out:
      break;
  }
  return Input::timed_out;
}

HttplibStream::Input HttplibStream::take_head(std::size_t most) {
  std::size_t looked = 0;
  while (true) {
    // Blank lines before a message are left over from sloppy clients.
    while (looked == 0 && socket_.ahead().starts_with(line_end)) socket_.skip(line_end.size());
    const std::string_view ahead = socket_.ahead();
    const std::size_t from = looked - std::min(looked, blank_line.size() - 1);
    const std::size_t found = ahead.find(blank_line, from);
    const bool whole = found != std::string_view::npos;
    const std::size_t size = whole ? found + blank_line.size() : ahead.size();
    if (size > most) return Input::too_large;
    if (whole) {
      set_head(with_literal_values(ahead.substr(0, size)));
      socket_.skip(size);
      return Input::ready;
    }
    looked = size;
    if (const Input more = fill(); more != Input::ready) return more;
  }
}

void HttplibStream::set_head(std::string head) {
  head_ = std::move(head);
  head_at_ = 0;
  last_read_ = Input::ready;
}

ssize_t HttplibStream::read(char* into, std::size_t size) {
  if (head_at_ == head_.size() && !flush()) return -1;
  if (expected_) {
    last_read_ = take_head(*std::exchange(expected_, std::nullopt));
    if (last_read_ != Input::ready) return -1;
    if (head_.find(line_end) > most_status_line) {
      last_read_ = Input::too_large;
      return -1;
    }
  }
  if (head_at_ < head_.size()) {
    const std::size_t count = std::min(size, head_.size() - head_at_);
    std::memcpy(into, head_.data() + head_at_, count);
    head_at_ += count;
    return static_cast<ssize_t>(count);
  }
  // httplib reads lines byte by byte.
  if (size == 1 && socket_.ahead().empty()) {
    last_read_ = fill();
    if (last_read_ == Input::end) return 0;
    if (last_read_ != Input::ready) return -1;
  }
  const auto got = socket_.read({into, size}, patience());
  if (got && got->kind == ReadOutcome::Kind::bytes) return static_cast<ssize_t>(got->size);
  if (got && got->kind == ReadOutcome::Kind::end) {
    last_read_ = Input::end;
    return 0;
  }
  last_read_ = got ? Input::timed_out : Input::broken;
  return -1;
}

ssize_t HttplibStream::write(const char* bytes, std::size_t size) {
  const auto all = static_cast<ssize_t>(size);
  if (muted_) return all;
  const bool alone = unsent_.empty() && size >= worth_sending;
  if (!alone && unsent_.size() + size <= most_unsent) {
    unsent_.append(bytes, size);
    return all;
  }
  const bool sent = flush() && socket_.write_within({bytes, size}, stall_);
  return sent ? all : -1;
}

bool HttplibStream::flush() {
  if (unsent_.empty()) return true;
  return socket_.write_within(std::exchange(unsent_, {}), stall_).has_value();
}

void HttplibStream::mute() {
  muted_ = true;
  unsent_.clear();
}

HttpHeaders fields_of(const httplib::Headers& headers) {
  std::vector<HttpHeaders::Field> fields(headers.begin(), headers.end());
  // It is a hash table, which gives the latest of equal names first.
  std::ranges::reverse(fields);
  HttpHeaders ours;
  for (auto& [name, value] : fields) ours.add(std::move(name), std::move(value));
  return ours;
}

}  // namespace fuse
