#include "hostmode/devices/inventory_files.h"

#include <algorithm>
#include <functional>

#include "base/quote.h"
#include "base/text.h"
#include "hostmode/devices/pci_address.h"

namespace fuse {

namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    if (c != ' ' && c != '\t' && c != '\r') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

using Pairs = std::map<std::string, std::string>;

// A line's words and what stands behind its bars, each a list of key=value.
struct Line {
  std::vector<std::string> words{};
  std::vector<Pairs> suffixes{};
};

Result<Pairs> parse_pairs(std::string_view text) {
  Pairs pairs;
  for (const std::string& part : split(text, ';')) {
    const std::string_view pair = trim(part);
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return Error{ErrorCode::invalid_argument, cat(in_quotes(pair), " is not key=value")};
    }
    pairs[std::string(trim(pair.substr(0, equals)))] = trim(pair.substr(equals + 1));
  }
  return pairs;
}

Result<Line> parse_line(std::string_view text) {
  const auto parts = split(text, '|');
  Line line{.words = words_of(parts.front())};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    auto pairs = parse_pairs(parts[i]);
    if (!pairs) return pairs.error();
    line.suffixes.push_back(std::move(*pairs));
  }
  return line;
}

using LineReader = std::function<Result<void>(const Line& line)>;

// Calls `read` with every line that says something; what it refuses is an error
// at "file:line".
Result<void> for_each_line(std::string_view text, std::string_view file, const LineReader& read) {
  std::size_t number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    const std::string_view content = trim(raw);
    if (content.empty() || content.front() == '#') continue;
    const auto line = parse_line(content);
    const Result<void> done = line ? read(*line) : Result<void>(line.error());
    if (!done) return in_context(cat(file, ':', number), done.error());
  }
  return {};
}

Error malformed(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message)};
}

std::string value_of(const Pairs& pairs, const std::string& key) {
  const auto found = pairs.find(key);
  return found == pairs.end() ? "" : found->second;
}

GpuFacts facts_of(const Pairs& pairs) {
  return {
      .bus_id = value_of(pairs, "bus_id"),
      .uuid = value_of(pairs, "uuid"),
      .model = value_of(pairs, "model"),
      .memory_mb = std::max<std::int64_t>(0, parse_int(value_of(pairs, "memory_mb")).value_or(0)),
      .driver_version = value_of(pairs, "driver_version"),
      .compute_cap = value_of(pairs, "compute_cap"),
      .mig_mode = value_of(pairs, "mig_mode")};
}

// A value must not end its pair, its suffix or its line.
void put(std::string& out, std::string_view key, std::string_view value) {
  if (value.empty()) return;
  if (!out.empty()) out += ';';
  out += cat(key, '=');
  for (const char c : value) {
    const bool separates = c == ';' || c == '|' || is_control(c);
    out += separates ? ' ' : c;
  }
}

std::string pairs_of(const GpuFacts& facts) {
  std::string out;
  put(out, "bus_id", facts.bus_id);
  put(out, "uuid", facts.uuid);
  put(out, "model", facts.model);
  if (facts.memory_mb > 0) put(out, "memory_mb", cat(facts.memory_mb));
  put(out, "driver_version", facts.driver_version);
  put(out, "compute_cap", facts.compute_cap);
  put(out, "mig_mode", facts.mig_mode);
  return out;
}

Result<InventoryGroup> group_of(const Line& line) {
  const auto& words = line.words;
  if (words.size() < 3) return malformed("a group is COUNT KIND SLOT [SLOT...] [| key=value;...]");
  const auto count = parse_int(words[0]);
  if (!count || *count < 1 || *count > 256) {
    return malformed(cat(in_quotes(words[0]), " is not a number of GPUs"));
  }
  InventoryGroup group{.count = static_cast<std::size_t>(*count), .kind = lowercase(words[1])};
  for (std::size_t i = 2; i < words.size(); ++i) {
    auto slot = pci_address(words[i]);
    if (!slot) {
      return malformed(cat(in_quotes(words[i]), " is not a PCI address, as in 0000:41:00.0"));
    }
    if (std::ranges::find(group.slots, *slot) != group.slots.end()) {
      return malformed(cat(*slot, " is named twice"));
    }
    group.slots.push_back(*std::move(slot));
  }
  if (group.slots.size() < group.count) {
    return malformed(
        cat("it counts ", group.count, " GPUs and names ", group.slots.size(), " functions"));
  }
  if (line.suffixes.size() > group.count) {
    return malformed(cat("it describes ", line.suffixes.size(), " GPUs and counts ", group.count));
  }
  for (const Pairs& pairs : line.suffixes) group.gpus.push_back(facts_of(pairs));
  return group;
}

Result<InventoryInstance> instance_of(const Line& line) {
  const auto& words = line.words;
  if (words.size() < 3 || words.size() > 4 || line.suffixes.size() > 1) {
    return malformed("an instance is PROFILE KIND UUID [PARENT_GPU_UUID] [| key=value;...]");
  }
  const Pairs pairs = line.suffixes.empty() ? Pairs() : line.suffixes.front();
  return InventoryInstance{.profile = lowercase(words[0]),
                           .kind = lowercase(words[1]),
                           .uuid = words[2],
                           .parent = words.size() == 4 ? words[3] : "",
                           .path = value_of(pairs, "path"),
                           .mig = value_of(pairs, "mig")};
}

}  // namespace

Result<std::vector<InventoryGroup>> parse_vfio_inventory(std::string_view text,
                                                         std::string_view file) {
  std::vector<InventoryGroup> groups;
  std::map<std::string, bool> named;
  const auto done = for_each_line(text, file, [&](const Line& line) -> Result<void> {
    auto group = group_of(line);
    if (!group) return group.error();
    for (const std::string& slot : group->slots) {
      if (!named.emplace(slot, true).second) {
        return malformed(cat(slot, " is in a line above too"));
      }
    }
    groups.push_back(std::move(*group));
    return {};
  });
  if (!done) return done.error();
  return groups;
}

std::string to_text(const std::vector<InventoryGroup>& groups) {
  std::string out = "# COUNT KIND SLOT [SLOT...] [| key=value;...] a GPU; one IOMMU group a line\n";
  for (const InventoryGroup& group : groups) {
    out += cat(group.count, ' ', group.kind, ' ', join(group.slots, " "));
    for (const GpuFacts& facts : group.gpus) {
      const std::string pairs = pairs_of(facts);
      if (!pairs.empty()) out += cat(" | ", pairs);
    }
    out += '\n';
  }
  return out;
}

Result<std::vector<InventoryInstance>> parse_mig_inventory(std::string_view text,
                                                           std::string_view file) {
  std::vector<InventoryInstance> instances;
  const auto done = for_each_line(text, file, [&](const Line& line) -> Result<void> {
    auto instance = instance_of(line);
    if (!instance) return instance.error();
    if (std::ranges::find(instances, instance->uuid, &InventoryInstance::uuid) != instances.end()) {
      return malformed(cat("instance ", instance->uuid, " is in a line above too"));
    }
    instances.push_back(std::move(*instance));
    return {};
  });
  if (!done) return done.error();
  return instances;
}

std::string to_text(const std::vector<InventoryInstance>& instances) {
  std::string out = "# PROFILE KIND UUID [PARENT_GPU_UUID] [| path=SYSFS;...]\n";
  for (const InventoryInstance& instance : instances) {
    out += cat(instance.profile, ' ', instance.kind, ' ', instance.uuid);
    if (!instance.parent.empty()) out += cat(' ', instance.parent);
    std::string pairs;
    put(pairs, "path", instance.path);
    put(pairs, "mig", instance.mig);
    if (!pairs.empty()) out += cat(" | ", pairs);
    out += '\n';
  }
  return out;
}

Result<std::map<std::string, KeptFacts>> parse_kept_facts(std::string_view text,
                                                          std::string_view file) {
  std::map<std::string, KeptFacts> facts;
  const auto done = for_each_line(text, file, [&](const Line& line) -> Result<void> {
    const auto slot = line.words.size() == 1 ? pci_address(line.words[0]) : std::nullopt;
    if (!slot || line.suffixes.size() != 1) return malformed("a line is SLOT | key=value;...");
    facts[*slot] = {.driver = value_of(line.suffixes[0], "driver"),
                    .gpu = facts_of(line.suffixes[0])};
    return {};
  });
  if (!done) return done.error();
  return facts;
}

std::string to_text(const std::map<std::string, KeptFacts>& facts) {
  std::string out = "# SLOT | key=value;...: what each function was before it was bound\n";
  for (const auto& [slot, kept] : facts) {
    std::string pairs;
    put(pairs, "driver", kept.driver);
    const std::string gpu = pairs_of(kept.gpu);
    if (!pairs.empty() && !gpu.empty()) pairs += ';';
    out += cat(slot, " | ", pairs, gpu, '\n');
  }
  return out;
}

Result<std::map<std::string, std::string>> parse_slot_lines(std::string_view text,
                                                            std::string_view file) {
  std::map<std::string, std::string> lines;
  const auto done = for_each_line(text, file, [&](const Line& line) -> Result<void> {
    const auto slot = line.words.empty() ? std::nullopt : pci_address(line.words.front());
    if (!slot || line.words.size() < 2) {
      return malformed("a line is SLOT and what is to be said about it, as in 0000:41:00.0 off");
    }
    const std::vector<std::string> words(std::next(line.words.begin()), line.words.end());
    lines[*slot] = join(words, " ");
    return {};
  });
  if (!done) return done.error();
  return lines;
}

std::string slot_lines_text(const std::map<std::string, std::string>& lines) {
  std::string out;
  for (const auto& [slot, words] : lines) {
    std::string line = words;
    std::ranges::replace_if(
        line, [](char c) { return c == '|' || is_control(c); }, ' ');
    out += cat(slot, ' ', line, '\n');
  }
  return out;
}

Result<std::string> read_if_there(Host& host, const fs::path& file) {
  auto text = host.read_file(file);
  if (!text && text.error().code == ErrorCode::not_found) return std::string();
  return text;
}

}  // namespace fuse
