#include "tests/hostmode/devices/sim_smi.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "tests/hostmode/devices/boxes.h"

namespace fuse {

namespace {

// "0000:0f:00.0" -> "00000000:0F:00.0"
std::string smi_bus(std::string address) {
  std::ranges::transform(address, address.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return "0000" + address;
}

std::string right(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

std::string left(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : text + std::string(width - text.size(), ' ');
}

constexpr std::string_view none_enabled = "No MIG-enabled devices found.\n";

std::string uuid_of_instance(const std::string& gpu, int id) {
  return cat("MIG-", gpu.substr(4, 8), "-0000-5000-8000-00000000000", id);
}

// A table's row between its rules.
std::string framed(const std::string& rule, const std::vector<std::string>& rows) {
  std::string out;
  for (const std::string& row : rows) out += cat(row, "\n", rule, "\n");
  return out;
}

}  // namespace

SimSmi::SimSmi(SimBox& box) : box_(box) {
  box.on_run = [this](const std::vector<std::string>& argv) { return answer(argv); };
}

SimSmi::Card& SimSmi::add(const std::string& address, const std::string& device,
                          const std::string& model) {
  Card& card = cards_.emplace_back();
  card.address = address;
  card.device = device;
  card.model = model;
  card.uuid = cat("GPU-", cards_.size(), "1111111-2222-3333-4444-555555555555");
  return card;
}

SimSmi::Card& SimSmi::card(const std::string& address) {
  return *std::ranges::find(cards_, address, &Card::address);
}

std::string SimSmi::number(const Card& card) const {
  return std::to_string(&card - cards_.data());
}

std::optional<SimBox::Answer> SimSmi::answer(const std::vector<std::string>& argv) {
  if (argv.front() == "dmesg") return SimBox::Answer{};
  if (argv.front() != "nvidia-smi") return std::nullopt;
  if (argv.at(1).starts_with("--query-gpu=")) return query_gpu();
  if (argv[1] == "-L") return listing();
  if (argv[1] == "mig") return mig(argv);
  // Whatever changes a card names it.
  const auto named = std::ranges::find(argv, "-i");
  if (named == argv.end()) return SimBox::Answer{"", "not one card was named\n", 2};
  Card& one = card(*std::next(named));
  if (argv[1] == "-q") return query(one);
  if (argv[1] == "-r") return reset(one);
  return set_mode(one, argv.back() == "1");
}

SimBox::Answer SimSmi::query_gpu() const {
  std::vector<std::string> rows;
  for (const Card& card : cards_) {
    if (box_.driver_of(card.address) != "nvidia") continue;
    const auto mode = [](bool on) { return on ? "Enabled" : "Disabled"; };
    rows.push_back(cat(number(card), ", ", card.uuid, ", ", card.model, ", ", smi_bus(card.address),
                       ", 40960 MiB, 550.54.15, 8.0, ", mode(card.mig), ", ", mode(card.pending)));
  }
  return {smi_csv_of(rows)};
}

SimBox::Answer SimSmi::listing() const {
  std::string out;
  for (const Card& card : cards_) {
    out += cat("GPU ", number(card), ": ", card.model, " (UUID: ", card.uuid, ")\n");
    int device = 0;
    for (const auto& [id, instance] : card.instances) {
      if (!instance.compute) continue;
      out += cat("  MIG ", left(instance.profile.name, 11), " Device  ", device++,
                 ": (UUID: ", uuid_of_instance(card.uuid, id), ")\n");
    }
  }
  return {out};
}

SimBox::Answer SimSmi::query(const Card& card) const {
  std::string out =
      cat("\n==============NVSMI LOG==============\n\nGPU ", smi_bus(card.address),
          "\n    MIG Mode\n        Current                 : ", card.mig ? "Enabled" : "Disabled",
          "\n");
  int device = 0;
  for (const auto& [id, instance] : card.instances) {
    if (!instance.compute) continue;
    out +=
        cat("    MIG Device\n        Index                   : ", device++,
            "\n        GPU Instance ID         : ", id, "\n        Compute Instance ID     : 0\n");
  }
  return {out};
}

SimBox::Answer SimSmi::set_mode(Card& card, bool on) {
  before_change();
  ++changes;
  if (!on && !card.instances.empty()) return {"Unable to disable MIG Mode: In use\n", "", 1};
  card.pending = on;
  std::string out;
  if (card.needs_reset && card.mig != on) {
    out = cat("Warning: MIG mode is in pending ", on ? "enable" : "disable", " state for GPU ",
              smi_bus(card.address), ":Reboot required\n");
  } else {
    card.mig = on;
    out = cat(on ? "Enabled" : "Disabled", " MIG Mode for GPU ", smi_bus(card.address), "\n");
  }
  return {out + "All done.\n"};
}

SimBox::Answer SimSmi::reset(Card& card) {
  ++changes;
  if (reset_refused) {
    return {cat("GPU Reset couldn't run because GPU ", smi_bus(card.address),
                " is In use by another client\n"),
            "", 1};
  }
  card.mig = card.pending;
  return {cat("GPU ", smi_bus(card.address), " was successfully reset.\nAll done.\n")};
}

SimBox::Answer SimSmi::mig(const std::vector<std::string>& argv) {
  if (argv.at(2) != "-i") return {"", "not one card was named\n", 2};
  Card& one = card(argv.at(3));
  if (!one.mig) return {std::string(none_enabled), "", 6};
  const std::string& verb = argv.at(4);
  if (verb == "-lgip" || verb == "-lgipp") {
    const SimBox::Answer both = profiles(one);
    return {verb == "-lgip" ? both.out : both.err};
  }
  if (verb == "-cgi") return create(one, argv.at(5));
  if (verb == "-dci") {
    const auto inside = one.instances.find(std::stoi(argv.at(6)));
    if (inside == one.instances.end()) {
      return {"No compute instances found: Not Found\n", "", 6};
    }
    inside->second.compute = false;
    return {"Successfully destroyed compute instance ID  0\n"};
  }
  if (verb == "-dgi") return destroy(one, std::stoi(argv.at(6)));
  const bool inside = verb == "-lci";
  std::vector<std::string> rows;
  for (const auto& [id, instance] : one.instances) {
    if (inside && !instance.compute) continue;
    const std::string place = cat(inside ? 0 : instance.start, ':', instance.profile.size);
    rows.push_back(inside ? cat("|   ", number(one), "     ", right(cat(id), 2), "       MIG ",
                                left(instance.profile.name, 15), "   0         0          ", place,
                                "     |")
                          : cat("|   ", number(one), "  MIG ", left(instance.profile.name, 16),
                                right(cat(instance.profile.id), 4), right(cat(id), 9), "          ",
                                place, "     |"));
  }
  if (rows.empty()) {
    return {
        inside ? "No compute instances found: Not Found\n" : "No GPU instances found: Not Found\n",
        "", 6};
  }
  const std::string rule = "+-------------------------------------------------------+";
  return {cat(rule, inside ? "\n| Compute instances:  |\n" : "\n| GPU instances:      |\n",
              "|=======================================================|\n", framed(rule, rows))};
}

// The profiles on one stream, their placements on the other.
SimBox::Answer SimSmi::profiles(const Card& card) const {
  const std::string rule =
      "+-----------------------------------------------------------------------------+";
  std::string table = cat(rule,
                          "\n| GPU instance profiles:                                          "
                          "            |\n|====|\n");
  std::string placements;
  const auto slots = known_slots(card.device);
  for (const SlotProfile& profile : slots->profiles) {
    const auto count = std::ranges::count_if(card.instances, [&](const auto& entry) {
      return entry.second.profile.name == profile.name;
    });
    table += cat("|   ", number(card), "  MIG ", left(profile.name, 14), right(cat(profile.id), 4),
                 "     ", profile.most - static_cast<int>(count), "/", profile.most,
                 "        4.75       No     14     0     0   |\n|                             "
                 "                                1     0     0   |\n",
                 rule, "\n");
    std::vector<std::string> starts;
    for (const int start : profile.starts) starts.push_back(cat(start));
    placements += cat("GPU  ", number(card), " Profile ID ", right(cat(profile.id), 2),
                      starts.size() == 1 ? " Placement : {" : " Placements: {", join(starts, ","),
                      "}:", profile.size, "\n");
  }
  return {table, placements};
}

SimBox::Answer SimSmi::create(Card& card, const std::string& what) {
  before_change();
  ++changes;
  const int id = std::stoi(what.substr(0, what.find(':')));
  const int start = std::stoi(what.substr(what.find(':') + 1));
  const auto slots = known_slots(card.device);
  const auto profile = std::ranges::find(slots->profiles, id, &SlotProfile::id);
  const bool legal = std::ranges::find(profile->starts, start) != profile->starts.end();
  int slices = profile->slices;
  bool free = true;
  for (const auto& [other, there] : card.instances) {
    slices += there.profile.slices;
    free =
        free && (there.start + there.profile.size <= start || start + profile->size <= there.start);
  }
  if (!legal || !free || slices > slots->slices || refuse_creation-- == 0) {
    return {cat("Unable to create a GPU instance on GPU ", right(number(card), 2),
                " using profile ", id,
                ": Insufficient Resources\nFailed to create GPU instances: "
                "Insufficient Resources\n"),
            "", 19};
  }
  int next = 3;
  while (card.instances.contains(next)) ++next;
  if (!lose_creations) card.instances[next] = {*profile, start, !fail_compute};
  std::string out = cat("Successfully created GPU instance ID ", right(cat(next), 2), " on GPU ",
                        right(number(card), 2), " using profile MIG ", profile->name, " (ID ",
                        right(cat(id), 2), ")\n");
  out += fail_compute ? "Unable to create a compute instance: Insufficient Resources\n"
                      : cat("Successfully created compute instance ID  0 on GPU ",
                            right(number(card), 2), " GPU instance ID ", right(cat(next), 2),
                            " using profile MIG ", profile->name, " (ID  0)\n");
  after_change();
  return {out, "", fail_compute ? 19 : 0};
}

SimBox::Answer SimSmi::destroy(Card& card, int id) {
  before_change();
  ++changes;
  const auto found = card.instances.find(id);
  if (found == card.instances.end()) return {"No GPU instances found: Not Found\n", "", 6};
  if (found->second.compute) {
    return {cat("Unable to destroy GPU instance ID ", right(cat(id), 2), " from GPU ",
                right(number(card), 2), ": In use by another client\n"),
            "", 19};
  }
  card.instances.erase(found);
  after_change();
  return {cat("Successfully destroyed GPU instance ID ", right(cat(id), 2), " from GPU ",
              right(number(card), 2), "\n")};
}

}  // namespace fuse
