#include "hostmode/mig/smi_mig.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/quote.h"
#include "base/text.h"
#include "hostmode/devices/pci_address.h"

namespace fuse {

namespace {

using Words = std::vector<std::string>;

Words words_of(std::string_view text) {
  Words words;
  for (std::string& word : split(text, ' ')) {
    if (!trim(word).empty()) words.emplace_back(trim(word));
  }
  return words;
}

// A whole number that is not negative; "1*" is 1, marked as the default.
std::optional<int> number_of(std::string_view word) {
  if (word.ends_with('*')) word.remove_suffix(1);
  const auto value = parse_int(word);
  if (!value || *value < 0 || *value > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*value);
}

// Reads all of the words as numbers, or nothing.
std::optional<std::vector<int>> numbers_of(const Words& words) {
  std::vector<int> numbers;
  for (const std::string& word : words) {
    const auto number = number_of(word);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

// The rows of a table that begin with a GPU's number and name a profile behind
// the word MIG, taken apart at that word.
struct Row {
  Words before{};  // numbers
  std::string name{};
  Words after{};
};

std::optional<Row> row_of(std::string_view line) {
  line = trim(line);
  if (!line.starts_with('|') || !line.ends_with('|') || line.size() < 2) return std::nullopt;
  const Words words = words_of(line.substr(1, line.size() - 2));
  const auto mig = std::ranges::find(words, "MIG");
  if (words.empty() || !number_of(words.front()) || mig == words.end()) return std::nullopt;
  if (std::next(mig) == words.end()) return std::nullopt;
  return Row{{words.begin(), mig}, *std::next(mig), {std::next(mig, 2), words.end()}};
}

bool says_none(std::string_view text) {
  for (const std::string& line : split(text, '\n')) {
    const std::string_view said = trim(line);
    if (said.starts_with("No ") && contains_ignoring_case(said, "found")) return true;
  }
  return false;
}

Error unclear(std::string_view what, std::string_view text) {
  constexpr std::size_t most = 300;
  const std::string_view said = trim(text);
  return {ErrorCode::internal, cat("nvidia-smi's list of ", what, " is not understood: ",
                                   in_quotes(said.substr(0, std::min(most, said.size()))))};
}

template <class T, class ReadRow>
Result<std::vector<T>> parse_table(std::string_view text, std::string_view title,
                                   std::string_view what, const ReadRow& read) {
  std::vector<T> out;
  if (text.find(title) == std::string_view::npos) {
    if (says_none(text)) return out;
    return unclear(what, text);
  }
  for (const std::string& line : split(text, '\n')) {
    const auto row = row_of(line);
    if (!row) continue;
    auto entry = read(*row);
    if (!entry) return unclear(what, line);
    out.push_back(*std::move(entry));
  }
  return out;
}

std::optional<std::vector<int>> pair_of(std::string_view text, char at) {
  auto numbers = numbers_of(split(text, at));
  if (!numbers || numbers->size() != 2) return std::nullopt;
  return numbers;
}

// "... KEY N ..." -> N.
std::optional<int> number_behind(std::string_view line, std::string_view key) {
  const std::size_t found = line.find(key);
  if (found == std::string_view::npos) return std::nullopt;
  const Words words = words_of(line.substr(found + key.size()));
  if (words.empty()) return std::nullopt;
  std::string word = words.front();
  while (!word.empty() && (word.back() == ':' || word.back() == ',')) word.pop_back();
  return number_of(word);
}

// "... (UUID: GPU-...)" -> "GPU-..."; `name` gets what stands before it.
std::optional<std::string> uuid_of(std::string_view line, std::string_view& name) {
  constexpr std::string_view mark = "(UUID: ";
  const std::size_t begin = line.rfind(mark);
  const std::size_t end = line.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) {
    return std::nullopt;
  }
  name = trim(line.substr(0, begin));
  return std::string(trim(line.substr(begin + mark.size(), end - begin - mark.size())));
}

// The number in "KEY : NUMBER".
std::optional<int> value_of(std::string_view line, std::string_view key) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || trim(line.substr(0, colon)) != key) return std::nullopt;
  return number_of(trim(line.substr(colon + 1)));
}

}  // namespace

Result<std::vector<GiProfile>> parse_gi_profiles(std::string_view text) {
  // GPU MIG NAME ID FREE/TOTAL GIB P2P SM DEC ENC
  const auto read = [](const Row& row) -> std::optional<GiProfile> {
    const auto gpu = numbers_of(row.before);
    if (!gpu || gpu->size() != 1 || row.after.size() < 5) return std::nullopt;
    const auto id = number_of(row.after[0]);
    const auto counts = pair_of(row.after[1], '/');
    const auto processors = number_of(row.after[4]);
    if (!id || !counts || !processors) return std::nullopt;
    return GiProfile{.gpu = gpu->front(),
                     .name = row.name,
                     .id = *id,
                     .free = (*counts)[0],
                     .total = (*counts)[1],
                     .memory_gib = row.after[2],
                     .multiprocessors = *processors};
  };
  return parse_table<GiProfile>(text, "GPU instance profiles", "profiles", read);
}

Result<std::vector<GpuInstance>> parse_gpu_instances(std::string_view text) {
  // GPU MIG NAME PROFILE INSTANCE START:SIZE
  const auto read = [](const Row& row) -> std::optional<GpuInstance> {
    const auto gpu = numbers_of(row.before);
    if (!gpu || gpu->size() != 1 || row.after.size() != 3) return std::nullopt;
    const auto profile = number_of(row.after[0]);
    const auto id = number_of(row.after[1]);
    const auto place = pair_of(row.after[2], ':');
    if (!profile || !id || !place) return std::nullopt;
    return GpuInstance{.gpu = gpu->front(),
                       .name = row.name,
                       .profile = *profile,
                       .id = *id,
                       .start = (*place)[0],
                       .size = (*place)[1]};
  };
  return parse_table<GpuInstance>(text, "GPU instances:", "GPU instances", read);
}

Result<std::vector<ComputeInstance>> parse_compute_instances(std::string_view text) {
  // GPU INSTANCE MIG NAME PROFILE ID START:SIZE
  const auto read = [](const Row& row) -> std::optional<ComputeInstance> {
    const auto numbers = numbers_of(row.before);
    if (!numbers || numbers->size() != 2 || row.after.size() != 3) return std::nullopt;
    const auto profile = number_of(row.after[0]);
    const auto id = number_of(row.after[1]);
    if (!profile || !id) return std::nullopt;
    return ComputeInstance{.gpu = (*numbers)[0],
                           .instance = (*numbers)[1],
                           .name = row.name,
                           .profile = *profile,
                           .id = *id};
  };
  return parse_table<ComputeInstance>(text, "Compute instances:", "compute instances", read);
}

Result<std::vector<GiPlacements>> parse_gi_placements(std::string_view text) {
  std::vector<GiPlacements> out;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t open = line.find('{');
    const std::size_t close = line.find("}:");
    const auto gpu = number_behind(line, "GPU ");
    const auto profile = number_behind(line, "Profile ID ");
    if (!gpu || !profile || open == std::string::npos || close == std::string::npos) continue;
    if (close < open) return unclear("placements", line);
    Words listed;
    for (const std::string& word :
         split(std::string_view(line).substr(open + 1, close - open - 1), ',')) {
      listed.emplace_back(trim(word));
    }
    const auto starts = numbers_of(listed);
    const auto size = number_of(trim(std::string_view(line).substr(close + 2)));
    if (!starts || !size || *size == 0) return unclear("placements", line);
    out.push_back({*gpu, *profile, *starts, *size});
  }
  if (out.empty() && !says_none(text)) return unclear("placements", text);
  return out;
}

CreationReport parse_creation(std::string_view text) {
  CreationReport report;
  for (const std::string& raw : split(text, '\n')) {
    const std::string_view line = trim(raw);
    if (line.empty()) continue;
    const bool compute = line.starts_with("Successfully created compute instance");
    const bool whole = line.starts_with("Successfully created GPU instance");
    const int id = number_behind(line, "GPU instance ID").value_or(-1);
    if (id < 0 || (!compute && !whole)) {
      report.complaints.emplace_back(line);
    } else {
      (compute ? report.with_compute : report.gpu_instances).push_back(id);
    }
  }
  return report;
}

std::vector<ListedGpu> parse_listing(std::string_view text) {
  std::vector<ListedGpu> gpus;
  for (const std::string& raw : split(text, '\n')) {
    std::string_view name;
    auto uuid = uuid_of(raw, name);
    if (!uuid) continue;
    if (name.starts_with("GPU ")) {
      const auto index = number_behind(name, "GPU ");
      const std::size_t colon = name.find(':');
      if (!index || colon == std::string_view::npos) continue;
      gpus.push_back({.index = *index,
                      .model = std::string(trim(name.substr(colon + 1))),
                      .uuid = *std::move(uuid)});
    } else if (name.starts_with("MIG ") && !gpus.empty()) {
      const Words words = words_of(name);
      const auto number = number_behind(name, "Device");
      if (words.size() < 2 || !number) continue;
      gpus.back().devices.push_back({words[1], *number, *std::move(uuid)});
    }
  }
  return gpus;
}

std::vector<QueriedGpu> parse_mig_query(std::string_view text) {
  std::vector<QueriedGpu> gpus;
  for (const std::string& raw : split(text, '\n')) {
    const std::string_view line = trim(raw);
    if (line.starts_with("GPU ") && raw.starts_with("GPU ")) {
      if (auto address = pci_address(line.substr(4))) gpus.push_back({*std::move(address), {}});
    }
    if (gpus.empty()) continue;
    auto& devices = gpus.back().devices;
    if (line == "MIG Device") devices.emplace_back();
    if (devices.empty()) continue;
    MigDeviceIds& last = devices.back();
    last.number = value_of(line, "Index").value_or(last.number);
    last.gpu_instance = value_of(line, "GPU Instance ID").value_or(last.gpu_instance);
    last.compute_instance = value_of(line, "Compute Instance ID").value_or(last.compute_instance);
  }
  return gpus;
}

}  // namespace fuse
