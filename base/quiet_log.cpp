#include "base/quiet_log.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace fuse {

namespace {

// More different problems than this at a time are not told apart from new ones.
constexpr std::size_t most_entries = 256;

std::string key_of(LogLevel level, std::string_view message,
                   std::initializer_list<LogField> fields) {
  std::string key = cat(static_cast<int>(level), '\0', message);
  for (const auto& [name, value] : fields) key += cat('\0', name, '\0', value);
  return key;
}

}  // namespace

void QuietLog::write(LogLevel level, std::string_view message,
                     std::initializer_list<LogField> fields) {
  if (level < LogLevel::warning) return log_.write(level, message, fields);
  const SteadyTime now = clock_.steady();
  const auto held_back = said_.with([&](Entries& entries) -> std::optional<std::uint64_t> {
    forget_old(entries, now);
    const auto [entry, fresh] =
        entries.try_emplace(key_of(level, message, fields), Said{.at = now});
    if (fresh) return 0;
    if (now - entry->second.at < interval_) {
      ++entry->second.held_back;
      return std::nullopt;
    }
    const std::uint64_t count = entry->second.held_back;
    entry->second = {.at = now};
    return count;
  });
  if (!held_back) return;
  if (*held_back == 0) return log_.write(level, message, fields);
  log_.write(level, cat(message, " (", *held_back, " times more since it was last said)"), fields);
}

// The memory for this has a bound, whatever is said.
void QuietLog::forget_old(Entries& entries, SteadyTime now) const {
  if (entries.size() < most_entries) return;
  std::erase_if(entries, [&](const auto& entry) { return now - entry.second.at >= interval_; });
  if (entries.size() >= most_entries) entries.clear();
}

}  // namespace fuse
