#include <algorithm>
#include <random>

#include "base/text.h"
#include "hostmode/mig/known_cards.h"
#include "hostmode/mig/layout_plan.h"
#include "hostmode/mig/mig_files.h"
#include "hostmode/mig/profile.h"
#include "hostmode/mig/vgpu_types.h"
#include "tests/catch.h"

namespace fuse {
namespace {

using Texts = std::vector<std::string>;

CardSlots card_of(const std::string& device, const std::string& address = "c") {
  CardSlots card = known_slots(device).value();
  card.card = address;
  return card;
}

// Puts an instance of the profile onto the card.
void use(CardSlots& card, const std::string& name, int start) {
  const SlotProfile* const profile = find_profile(card, name);
  REQUIRE(profile != nullptr);
  card.used.push_back({profile->name, profile->slices, start, profile->size});
}

// "1g.5gb@6", in order of places.
Texts places(const Result<std::vector<SlotChoice>>& plan) {
  REQUIRE(plan);
  Texts out;
  for (const SlotChoice& choice : *plan) {
    out.push_back(cat(choice.card, ' ', choice.profile.name, '@', choice.start));
  }
  return out;
}

TEST_CASE("instances are placed so that the large places stay whole") {
  CHECK(places(plan_layout({{"1g.5gb", 1}}, {card_of("20b0")})) == Texts{"0 1g.5gb@6"});
  CHECK(places(plan_layout({{"1g.5gb", 2}, {"3g.20gb", 1}, {"2g.10gb", 1}}, {card_of("20b0")})) ==
        Texts{"0 3g.20gb@4", "0 2g.10gb@2", "0 1g.5gb@1", "0 1g.5gb@0"});
  CHECK(plan_layout({{"1g.5gb", 7}}, {card_of("20b0")})->size() == 7);
  CHECK_FALSE(plan_layout({{"1g.5gb", 8}}, {card_of("20b0")}));
  // All memory, with a compute slice idle.
  CHECK(plan_layout({{"3g.20gb", 2}}, {card_of("20b0")})->size() == 2);
  CHECK_FALSE(plan_layout({{"3g.20gb", 2}, {"1g.5gb", 1}}, {card_of("20b0")}));
  CHECK(plan_layout({{"4g.20gb", 1}, {"3g.20gb", 1}}, {card_of("20b0")})->size() == 2);
  CHECK(places(plan_layout({{"1g.24gb", 2}, {"2g.48gb", 1}}, {card_of("2bb5")})) ==
        Texts{"0 2g.48gb@6", "0 1g.24gb@3", "0 1g.24gb@0"});
  CHECK_FALSE(plan_layout({{"1g.6gb+me", 2}}, {card_of("20b7")}));
  CHECK(plan_layout({{"1g.6gb", 4}}, {card_of("20b7")})->size() == 4);
}

TEST_CASE("free memory in the wrong places is not enough") {
  CardSlots card = card_of("20b2", "0000:41:00.0");
  for (const int start : {0, 1, 5}) use(card, "1g.10gb", start);
  const auto plan = plan_layout({{"3g.40gb", 1}}, {card});
  REQUIRE_FALSE(plan);
  CHECK(plan.error().details.at("0000:41:00.0") ==
        "holds 1g.10gb at 0, 1g.10gb at 1, 1g.10gb at 5; 3g.40gb begins at 0 or 4 and takes 4");
  CHECK(places(plan_layout({{"2g.20gb", 1}}, {card})) == Texts{"0 2g.20gb@2"});
  CHECK(places(plan_layout({{"1g.20gb", 2}}, {card})) == Texts{"0 1g.20gb@6", "0 1g.20gb@2"});
  // What is there counts towards what is wanted.
  CHECK(plan_layout({{"1g.10gb", 3}}, {card})->empty());
}

TEST_CASE("as few cards as can be are cut") {
  const std::vector<CardSlots> cards = {card_of("20b0"), card_of("20b0"), card_of("20b0")};
  CHECK(plan_layout({{"3g.20gb", 2}}, cards)->back().card == 0);
  const auto plan = plan_layout({{"3g.20gb", 3}, {"4g.20gb", 1}}, cards);
  REQUIRE(plan);
  CHECK(std::ranges::max(*plan, {}, &SlotChoice::card).card == 1);
  CHECK(plan_layout({{"1g.5gb", 21}}, cards)->size() == 21);
  CHECK_FALSE(plan_layout({{"1g.5gb", 22}}, cards));
}

// Whether there is any way, by trying every place for each instance in turn.
bool possible(std::vector<std::string> wanted, CardSlots card) {
  if (wanted.empty()) return true;
  const SlotProfile* const profile = find_profile(card, wanted.back());
  wanted.pop_back();
  int slices = card.slices;
  for (const SlotUse& there : card.used) slices -= there.slices;
  const auto same = std::ranges::count(card.used, profile->name, &SlotUse::profile);
  if (slices < profile->slices || same >= profile->most) return false;
  for (const int start : profile->starts) {
    const bool free = std::ranges::all_of(card.used, [&](const SlotUse& there) {
      return there.start + there.size <= start || start + profile->size <= there.start;
    });
    if (!free) continue;
    CardSlots with = card;
    with.used.push_back({profile->name, profile->slices, start, profile->size});
    if (possible(wanted, with)) return true;
  }
  return false;
}

TEST_CASE("a plan is found whenever there is one, and is one that a card takes") {
  std::minstd_rand random(20261201);
  for (int round = 0; round < 400; ++round) {
    const std::string device = std::array{"20b0", "20b7", "2bb5"}.at(random() % 3);
    CardSlots card = card_of(device);
    const std::size_t kinds = card.profiles.size();
    for (int i = 0; i < 2; ++i) {
      const SlotProfile profile = card.profiles[random() % kinds];
      const int start = profile.starts[random() % profile.starts.size()];
      const bool free = std::ranges::all_of(card.used, [&](const SlotUse& there) {
        return there.start + there.size <= start || start + profile.size <= there.start;
      });
      if (free) card.used.push_back({profile.name, profile.slices, start, profile.size});
    }
    std::map<std::string, int> counts;
    for (std::size_t i = 0; i < 1 + random() % 4; ++i) {
      ++counts[card.profiles[random() % kinds].name];
    }
    std::vector<LayoutWish> wishes;
    Texts wanted;
    for (const auto& [name, count] : counts) {
      wishes.push_back({name, count});
      const auto there = std::ranges::count(card.used, name, &SlotUse::profile);
      for (auto i = there; i < count; ++i) wanted.push_back(name);
    }
    const auto plan = plan_layout(wishes, {card});
    INFO(device << " holds " << uses_words(card.used) << ", wanted " << join(wanted, " "));
    REQUIRE(plan.has_value() == possible(wanted, card));
    if (!plan) continue;
    CHECK(plan->size() == wanted.size());
    CardSlots after = card;
    for (const SlotChoice& choice : *plan) {
      for (const SlotUse& there : after.used) {
        CHECK((there.start + there.size <= choice.start ||
               choice.start + choice.profile.size <= there.start));
      }
      CHECK(std::ranges::count(choice.profile.starts, choice.start) == 1);
      after.used.push_back(
          {choice.profile.name, choice.profile.slices, choice.start, choice.profile.size});
    }
    int slices = 0;
    for (const SlotUse& there : after.used) slices += there.slices;
    if (!wanted.empty()) CHECK(slices <= card.slices);
  }
}

TEST_CASE("profile names are taken apart, and what is none is refused with a way out") {
  CHECK(parse_profile("1c.3g.40gb").value() ==
        MigProfile{.compute = 1, .slices = 3, .gigabytes = 40});
  CHECK(parse_profile("1g.24gb+me.all").value().attributes == "+me.all");
  CHECK(parse_profile("1g.5gb+me,gfx").value().attributes == "+me,gfx");
  CHECK(parse_profile("1g.24gb-me").value().attributes == "-me");
  for (const std::string_view wrong :
       {"", "1g", "1g.5", "5gb", "g.5gb", "0g.5gb", "3g.20gb+", "3g.20gb+me-gfx", "1g.24gb+gfx-me",
        "1g.5gb +me", "1G.5GB", "4c.3g.20gb", "1c.1g.5gb.me", "mig-1g.5gb", "1g.5gb+foo",
        "99999999999g.5gb"}) {
    INFO(wrong);
    const auto profile = parse_profile(wrong);
    REQUIRE_FALSE(profile);
    CHECK(profile.error().message == cat('"', wrong, "\" is not a MIG profile"));
    CHECK(profile.error().details.at("hint") ==
          "write slices and memory, as in 1g.10gb or 1g.10gb+me");
  }
}

TEST_CASE("a profile is found under the name that the driver has for it") {
  const Texts names = {"1g.5gb", "1g.10gb", "3g.39gb", "3g.39gb+me"};
  CHECK(resolve_profile("3g.40gb", names) == "3g.39gb");
  CHECK(resolve_profile("1g.5gb", names) == "1g.5gb");
  CHECK_FALSE(resolve_profile("1g.20gb", names));
  CHECK_FALSE(resolve_profile("4g.40gb", names));
}

TEST_CASE("vGPU types are matched to the instances behind them") {
  CHECK(profile_of_vgpu("GRID A100-1-5CME").value() ==
        MigProfile{.slices = 1, .gigabytes = 5, .attributes = "+me"});
  CHECK(profile_of_vgpu("NVIDIA H200X-1-18C").value().gigabytes == 18);
  CHECK_FALSE(profile_of_vgpu("NVIDIA L40S-1B"));
  CHECK_FALSE(profile_of_vgpu("GRID A100-40C"));
  CHECK_FALSE(profile_of_vgpu("A100-1-5X"));
  const auto types = parse_creatable_types(
      "ID    : vGPU Name\n1145  : NVIDIA L40S-1B\n1428 : NVIDIA H200X-141C\n1413 : NVIDIA "
      "H200X-1-18Q\n1414 : NVIDIA H200X-1-18C\n");
  CHECK(types.size() == 4);
  CHECK(type_for(types, parse_profile("1g.18gb").value()).value().id == "1414");
  CHECK_FALSE(type_for(types, parse_profile("2g.35gb").value()));
  CHECK(type_for({{"7", "NVIDIA DC-1-24Q"}}, parse_profile("1g.24gb+gfx").value()).value().id ==
        "7");
}

TEST_CASE("layout and journal are read as they are written") {
  const std::vector<LayoutEntry> layout = {{"GPU-a", "1g.10gb", 0, "u1"},
                                           {"GPU-a", "3g.40gb+me", 4, "u2"}};
  CHECK(parse_layout(to_text(layout), "f").value() == layout);
  CHECK(parse_layout("GPU-a 1g.10gb x u\n", "f").error().message ==
        "f:1: an instance is GPU_UUID PROFILE START DEVICE_UUID");
  const MigJournal journal{.switched = {"0000:0f:00.0"},
                           .had = {{"0000:0f:00.0", {1, 7}}, {"0000:10:00.0", {}}},
                           .devices = {"/sys/x"},
                           .drop = {{"0000:10:00.0", {3}}}};
  CHECK(parse_journal(to_text(journal), "f").value() == journal);
  for (const std::string_view wrong :
       {"had", "had x", "had 0000:0f:00.0 -1", "lost 0000:0f:00.0"}) {
    CHECK_FALSE(parse_journal(wrong, "f"));
  }
}

}  // namespace
}  // namespace fuse
