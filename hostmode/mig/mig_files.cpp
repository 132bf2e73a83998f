#include "hostmode/mig/mig_files.h"

#include <functional>
#include <limits>
#include <optional>

#include "base/quote.h"
#include "base/text.h"
#include "hostmode/devices/pci_address.h"
#include "hostmode/mig/profile.h"

namespace fuse {

namespace {

using Words = std::vector<std::string>;

Result<void> for_each_line(std::string_view text, std::string_view file,
                           const std::function<Result<void>(const Words&)>& read) {
  std::size_t number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (line.empty() || line.front() == '#') continue;
    Words words;
    for (std::string& word : split(line, ' ')) {
      if (!word.empty()) words.push_back(std::move(word));
    }
    if (auto done = read(words); !done) return in_context(cat(file, ':', number), done.error());
  }
  return {};
}

Error malformed(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message)};
}

std::optional<int> number_of(std::string_view word) {
  const auto value = parse_int(word);
  if (!value || *value < 0 || *value > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*value);
}

Result<void> read_journal_line(MigJournal& journal, const Words& words) {
  const std::string& verb = words.front();
  if (verb == "device" && words.size() == 2) {
    journal.devices.insert(words[1]);
    return {};
  }
  const auto card = words.size() > 1 ? pci_address(words[1]) : std::nullopt;
  if (!card) return malformed("a line is switched, had or drop and a card, or device and a path");
  if (verb == "switched" && words.size() == 2) {
    journal.switched.insert(*card);
    return {};
  }
  if (verb != "had" && verb != "drop") return malformed(cat(in_quotes(verb), " is not known"));
  std::set<int>& ids = verb == "had" ? journal.had[*card] : journal.drop[*card];
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto id = number_of(words[i]);
    if (!id) return malformed(cat(in_quotes(words[i]), " is not an instance's number"));
    ids.insert(*id);
  }
  return {};
}

std::string id_lines(std::string_view verb, const std::map<std::string, std::set<int>>& cards) {
  std::string out;
  for (const auto& [card, ids] : cards) {
    out += cat(verb, ' ', card);
    for (const int id : ids) out += cat(' ', id);
    out += '\n';
  }
  return out;
}

}  // namespace

Result<std::vector<LayoutEntry>> parse_layout(std::string_view text, std::string_view file) {
  std::vector<LayoutEntry> layout;
  const auto done = for_each_line(text, file, [&](const Words& words) -> Result<void> {
    const auto start = words.size() == 4 ? number_of(words[2]) : std::nullopt;
    if (!start) return malformed("an instance is GPU_UUID PROFILE START DEVICE_UUID");
    if (auto profile = parse_profile(words[1]); !profile) return profile.error();
    layout.push_back({words[0], words[1], *start, words[3]});
    return {};
  });
  if (!done) return done.error();
  return layout;
}

std::string to_text(const std::vector<LayoutEntry>& layout) {
  std::string out = "# GPU_UUID PROFILE START DEVICE_UUID: what fuse agent mig apply makes again\n";
  for (const LayoutEntry& entry : layout) {
    out += cat(entry.gpu, ' ', entry.profile, ' ', entry.start, ' ', entry.device, '\n');
  }
  return out;
}

Result<MigJournal> parse_journal(std::string_view text, std::string_view file) {
  MigJournal journal;
  const auto done = for_each_line(
      text, file, [&](const Words& words) { return read_journal_line(journal, words); });
  if (!done) return done.error();
  return journal;
}

std::string to_text(const MigJournal& journal) {
  std::string out = "# a change that is under way, or was broken off\n";
  for (const std::string& card : journal.switched) out += cat("switched ", card, '\n');
  for (const std::string& path : journal.devices) out += cat("device ", path, '\n');
  return cat(out, id_lines("had", journal.had), id_lines("drop", journal.drop));
}

Result<std::vector<LayoutEntry>> read_layout(Host& host, const DevicePaths& paths) {
  const auto text = read_if_there(host, paths.layout());
  if (!text) return text.error();
  return parse_layout(*text, paths.layout().native());
}

Result<void> write_layout(Host& host, const DevicePaths& paths,
                          const std::vector<LayoutEntry>& layout) {
  if (auto made = host.make_dirs(paths.dir, 0755); !made) return made;
  return host.replace_file(paths.layout(), to_text(layout), 0644);
}

}  // namespace fuse
