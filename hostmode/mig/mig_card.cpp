#include "hostmode/mig/mig_card.h"

#include <algorithm>

#include "base/text.h"
#include "hostmode/devices/holders.h"
#include "hostmode/mig/known_cards.h"
#include "hostmode/mig/profile.h"

namespace fuse {

namespace {

// What it printed on either stream: it refuses on stdout too.
Result<std::string> smi_text(Host& host, const MigCard& card, std::vector<std::string> arguments) {
  std::vector<std::string> all = {"mig", "-i", card.address};
  std::ranges::move(arguments, std::back_inserter(all));
  const auto output = run_smi(host, std::move(all));
  if (!output) return output.error();
  return cat(output->out, output->err);
}

std::string said(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string& line : split(trim(text), '\n')) lines.emplace_back(trim(line));
  return join(lines, " / ");
}

SlotProfile slot_profile(const GiProfile& profile, const std::vector<GiPlacements>& placements) {
  const auto place = std::ranges::find(placements, profile.id, &GiPlacements::profile);
  const auto name = parse_profile(profile.name);
  SlotProfile out{.name = profile.name,
                  .id = profile.id,
                  .slices = name ? name->slices : 0,
                  .most = profile.total};
  if (place != placements.end()) {
    out.size = place->size;
    out.starts = place->starts;
  }
  return out;
}

void fill_uses(MigCard& card) {
  card.slots.used.clear();
  for (const GpuInstance& instance : card.instances) {
    const auto name = parse_profile(instance.name);
    card.slots.used.push_back({.profile = instance.name,
                               .slices = name ? name->slices : 0,
                               .start = instance.start,
                               .size = instance.size});
  }
}

Result<SmiGpu> ask_mode(Host& host, const MigCard& card) {
  const auto view = query_smi(host);
  const SmiGpu* const gpu = view.find(card.address);
  if (gpu != nullptr) return *gpu;
  return Error{ErrorCode::unavailable, cat("nvidia-smi no longer sees ", card.address)};
}

Error not_switched(Host& host, const MigCard& card, bool on, std::string_view reset) {
  PciDevice pci{.address = card.address, .driver = "nvidia"};
  const auto holders = find_holders(host, device_files_of(host, pci));
  Error error{ErrorCode::conflict,
              cat("MIG mode of ", card.address, " cannot be switched ", on ? "on" : "off",
                  " without a reset of the card, which fails: ", said(reset))};
  if (!holders.empty()) {
    error.message += cat("; ", holder_words(holders));
    error.details["hint"] = holder_hint(holders, card.address);
  }
  return error;
}

MigCard card_of(const GpuCard& card) {
  return {.address = card.pci.address,
          .uuid = card.facts.uuid,
          .device = card.pci.device,
          .kind = card.kind,
          .enabled = equal_ignoring_case(card.facts.mig_mode, "enabled")};
}

}  // namespace

Result<void> read_slots(Host& host, MigCard& card) {
  const auto profiles_text = smi_text(host, card, {"-lgip"});
  if (!profiles_text) return profiles_text.error();
  const auto profiles = parse_gi_profiles(*profiles_text);
  if (!profiles) return in_context(card.address, profiles.error());
  const auto placements_text = smi_text(host, card, {"-lgipp"});
  if (!placements_text) return placements_text.error();
  const auto placements = parse_gi_placements(*placements_text);
  if (!placements) return in_context(card.address, placements.error());
  const auto instances_text = smi_text(host, card, {"-lgi"});
  if (!instances_text) return instances_text.error();
  auto instances = parse_gpu_instances(*instances_text);
  if (!instances) return in_context(card.address, instances.error());
  const auto inside_text = smi_text(host, card, {"-lci"});
  if (!inside_text) return inside_text.error();
  auto inside = parse_compute_instances(*inside_text);
  if (!inside) return in_context(card.address, inside.error());

  card.slots = {.card = card.address};
  for (const GiProfile& profile : *profiles) {
    card.slots.profiles.push_back(slot_profile(profile, *placements));
    card.slots.slices = std::max(card.slots.slices, card.slots.profiles.back().slices);
  }
  card.instances = std::move(*instances);
  card.inside = std::move(*inside);
  fill_uses(card);
  return {};
}

Result<std::vector<MigCard>> read_mig_cards(Host& host, const DeviceInventory& inventory) {
  std::vector<MigCard> cards;
  for (const CardGroup& group : inventory.groups) {
    for (const GpuCard& found : group.cards) {
      const bool has_mig = !is_no_value(found.facts.mig_mode) && found.pci.driver == "nvidia";
      if (!has_mig) continue;
      MigCard card = card_of(found);
      if (card.enabled) {
        if (auto read = read_slots(host, card); !read) return read.error();
      } else if (auto known = known_slots(card.device)) {
        card.slots = *std::move(known);
        card.slots.card = card.address;
      }
      cards.push_back(std::move(card));
    }
  }
  std::stable_partition(cards.begin(), cards.end(),
                        [](const MigCard& card) { return card.enabled; });
  return cards;
}

Result<void> switch_mig_mode(Host& host, const MigCard& card, bool on) {
  const std::string wanted = on ? "Enabled" : "Disabled";
  auto switched = run_smi(host, {"-i", card.address, "-mig", on ? "1" : "0"});
  if (!switched) return switched.error();
  auto mode = ask_mode(host, card);
  if (!mode) return mode.error();
  if (mode->mig_pending != wanted) {
    return Error{ErrorCode::internal,
                 cat("MIG mode of ", card.address, " stays ", mode->mig_current, ": ",
                     said(cat(switched->out, switched->err)))};
  }
  if (mode->mig_current == wanted) return {};
  // Cards before Hopper change with a reset.
  const auto reset = run_smi(host, {"-r", "-i", card.address});
  if (!reset) return reset.error();
  mode = ask_mode(host, card);
  if (!mode) return mode.error();
  if (mode->mig_current == wanted) return {};
  return not_switched(host, card, on, cat(reset->out, reset->err));
}

Result<int> create_instance(Host& host, const MigCard& card, const SlotProfile& profile,
                            int start) {
  const auto text = smi_text(host, card, {"-cgi", cat(profile.id, ':', start), "-C"});
  if (!text) return text.error();
  const CreationReport report = parse_creation(*text);
  const std::string what = cat("make ", profile.name, " at ", start, " of ", card.address);
  if (report.gpu_instances.size() != 1) {
    return Error{ErrorCode::internal, cat(what, ": nvidia-smi says: ", said(*text))};
  }
  const int id = report.gpu_instances.front();
  if (report.with_compute == report.gpu_instances) return id;
  Error half{ErrorCode::internal,
             cat(what, ": it got no compute instance: ", join(report.complaints, " / "))};
  if (auto undone = destroy_instance(host, card, id); !undone) {
    half.message += cat("; and it could not be taken away: ", undone.error().message);
  }
  return half;
}

Result<void> destroy_instance(Host& host, const MigCard& card, int instance) {
  const std::string id = cat(instance);
  const auto inside = smi_text(host, card, {"-dci", "-gi", id});
  if (!inside) return inside.error();
  const auto itself = smi_text(host, card, {"-dgi", "-gi", id});
  if (!itself) return itself.error();
  const auto left = smi_text(host, card, {"-lgi"});
  if (!left) return left.error();
  const auto instances = parse_gpu_instances(*left);
  if (!instances) return instances.error();
  if (std::ranges::find(*instances, instance, &GpuInstance::id) == instances->end()) return {};
  return Error{ErrorCode::conflict,
               cat("instance ", id, " of ", card.address, " stays: ", said(cat(*inside, *itself)))};
}

std::map<int, std::string> mig_uuids(Host& host, const MigCard& card) {
  std::map<int, std::string> uuids;
  const auto listing = run_smi(host, {"-L"});
  const auto query = run_smi(host, {"-q", "-i", card.address});
  if (!listing || !query) return uuids;
  const auto queried = parse_mig_query(query->out);
  const auto asked = std::ranges::find(queried, card.address, &QueriedGpu::address);
  for (const ListedGpu& gpu : parse_listing(listing->out)) {
    if (gpu.uuid != card.uuid || asked == queried.end()) continue;
    for (const MigDevice& device : gpu.devices) {
      const auto ids = std::ranges::find(asked->devices, device.number, &MigDeviceIds::number);
      if (ids != asked->devices.end()) uuids.emplace(ids->gpu_instance, device.uuid);
    }
  }
  return uuids;
}

}  // namespace fuse
