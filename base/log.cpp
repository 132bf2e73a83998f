#include "base/log.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/quote.h"
#include "base/text.h"

namespace fuse {

namespace {

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "error";
}

// A value as it stands in a text line.
std::string plain_or_quoted(std::string_view value) {
  const bool plain = !value.empty() && std::ranges::all_of(value, [](char c) {
    return c > ' ' && c != '"' && c != '=' && c != '\\' && !is_control(c);
  });
  return plain ? std::string(value) : in_quotes(value);
}

}  // namespace

StreamLog::StreamLog(std::ostream& out, const Clock& clock, LogFormat format, LogLevel least)
    : out_(out), clock_(clock), format_(format), least_(least) {}

void StreamLog::write(LogLevel level, std::string_view message,
                      std::initializer_list<LogField> fields) {
  if (level < least_) return;
  std::string line;
  if (format_ == LogFormat::json) {
    nlohmann::ordered_json entry;
    entry["time"] = to_rfc3339(clock_.wall());
    entry["level"] = name_of(level);
    entry["message"] = valid_utf8(message);
    for (const auto& [key, value] : fields) entry[std::string(key)] = valid_utf8(value);
    line = entry.dump();
  } else {
    line = cat(to_rfc3339(clock_.wall()), " ", name_of(level), " ", valid_utf8(message));
    std::ranges::replace_if(line, is_control, ' ');
    for (const auto& [key, value] : fields) line += cat(" ", key, "=", plain_or_quoted(value));
  }
  const std::scoped_lock lock(mutex_);
  out_ << line << '\n' << std::flush;
}

}  // namespace fuse
