#include "hostmode/mig/layout_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/text.h"
#include "hostmode/mig/profile.h"

namespace fuse {

namespace {

using Counts = std::vector<int>;  // by wish

int count_of(const CardSlots& card, const std::string& wanted) {
  const SlotProfile* const profile = find_profile(card, wanted);
  if (profile == nullptr) return 0;
  return static_cast<int>(std::ranges::count(card.used, profile->name, &SlotUse::profile));
}

// Every way in which a card can take some of the wishes, one way for each
// combination of counts.  Large ones are placed first and everything as far to the
// end as it goes, which is how the big places stay together.
class CardOptions {
 public:
  CardOptions(const CardSlots& card, std::size_t index, const std::vector<LayoutWish>& wishes,
              const Counts& missing)
      : card_(card), index_(index), missing_(missing) {
    for (const LayoutWish& wish : wishes) profiles_.push_back(find_profile(card, wish.profile));
    order_.resize(wishes.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_,
                             [&](std::size_t a, std::size_t b) { return size_of(a) > size_of(b); });
    for (const SlotUse& use : card.used) take(use.start, use.size, true);
    slices_left_ = card.slices;
    for (const SlotUse& use : card.used) slices_left_ -= use.slices;
    counts_.assign(wishes.size(), 0);
    search(0, -1);
  }

  [[nodiscard]] const std::map<Counts, std::vector<SlotChoice>>& options() const {
    return options_;
  }

 private:
  [[nodiscard]] int size_of(std::size_t wish) const {
    return profiles_[wish] == nullptr ? 0 : profiles_[wish]->size;
  }

  void take(int start, int size, bool taken) {
    for (int i = start; i < start + size; ++i) {
      if (taken) grid_.insert(i);
      if (!taken) grid_.erase(i);
    }
  }

  [[nodiscard]] bool is_free(int start, int size) const {
    const auto next = grid_.lower_bound(start);
    return next == grid_.end() || *next >= start + size;
  }

  [[nodiscard]] bool may_have_more(std::size_t wish) const {
    const SlotProfile* const profile = profiles_[wish];
    if (profile == nullptr || counts_[wish] >= missing_[wish]) return false;
    const auto there = std::ranges::count(card_.used, profile->name, &SlotUse::profile);
    return static_cast<int>(there) + counts_[wish] < profile->most;
  }

  // Goes on with the wish at `step` of the order, below the start of the last one
  // placed of it (-1: none yet), then with the next.
  void search(std::size_t step, int below) {
    if (step == order_.size()) {
      options_.emplace(counts_, chosen_);
      return;
    }
    const std::size_t wish = order_[step];
    if (may_have_more(wish)) place_one(step, wish, below);
    search(step + 1, -1);
  }

  void place_one(std::size_t step, std::size_t wish, int below) {
    const SlotProfile& profile = *profiles_[wish];
    std::vector<int> starts = profile.starts;
    std::ranges::sort(starts, std::greater<>());
    for (const int start : starts) {
      const bool fits = (below < 0 || start < below) && is_free(start, profile.size) &&
                        profile.slices <= slices_left_;
      if (!fits) continue;
      take(start, profile.size, true);
      slices_left_ -= profile.slices;
      ++counts_[wish];
      chosen_.push_back({index_, profile, start});
      search(step, start);
      chosen_.pop_back();
      --counts_[wish];
      slices_left_ += profile.slices;
      take(start, profile.size, false);
    }
  }

  const CardSlots& card_;
  std::size_t index_;
  const Counts& missing_;
  std::vector<const SlotProfile*> profiles_{};
  std::vector<std::size_t> order_{};
  std::set<int> grid_{};
  int slices_left_ = 0;
  Counts counts_{};
  std::vector<SlotChoice> chosen_{};
  std::map<Counts, std::vector<SlotChoice>> options_{};
};

bool is_done(const Counts& missing) {
  return std::ranges::all_of(missing, [](int count) { return count == 0; });
}

using Reached = std::map<Counts, std::vector<SlotChoice>>;  // by what is still missing

// What can be reached by giving this card one of its options as well.
Reached with_card(const Reached& reached, const CardOptions& options) {
  Reached next = reached;
  for (const auto& [missing, chosen] : reached) {
    for (const auto& [counts, choices] : options.options()) {
      Counts left = missing;
      bool fits = true;
      for (std::size_t i = 0; i < left.size(); ++i) {
        left[i] -= counts[i];
        fits = fits && left[i] >= 0;
      }
      if (!fits || next.contains(left)) continue;
      std::vector<SlotChoice> both = chosen;
      both.insert(both.end(), choices.begin(), choices.end());
      next.emplace(std::move(left), std::move(both));
    }
  }
  return next;
}

std::string starts_words(const SlotProfile& profile) {
  std::vector<std::string> starts;
  starts.reserve(profile.starts.size());
  for (const int start : profile.starts) starts.push_back(cat(start));
  return join(starts, " or ");
}

Error does_not_fit(const std::vector<LayoutWish>& wishes, const Counts& missing,
                   const std::vector<CardSlots>& cards) {
  std::vector<std::string> wanted;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    if (missing[i] > 0) wanted.push_back(cat(missing[i], " x ", wishes[i].profile));
  }
  Error error{ErrorCode::unavailable,
              cat("there is no place for ", join(wanted, " and "), ": nothing was changed"),
              {{"reason", "placement"}}};
  for (const CardSlots& card : cards) {
    std::string words = cat("holds ", uses_words(card.used));
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      if (missing[i] == 0) continue;
      const SlotProfile* const profile = find_profile(card, wishes[i].profile);
      words += profile == nullptr ? cat("; it has no ", wishes[i].profile)
                                  : cat("; ", profile->name, " begins at ", starts_words(*profile),
                                        " and takes ", profile->size);
    }
    error.details[card.card] = std::move(words);
  }
  return error;
}

}  // namespace

const SlotProfile* find_profile(const CardSlots& card, const std::string& wanted) {
  std::vector<std::string> names;
  names.reserve(card.profiles.size());
  for (const SlotProfile& profile : card.profiles) names.push_back(profile.name);
  const auto name = resolve_profile(wanted, names);
  if (!name) return nullptr;
  return &*std::ranges::find(card.profiles, *name, &SlotProfile::name);
}

std::string uses_words(const std::vector<SlotUse>& uses) {
  std::vector<std::string> words;
  words.reserve(uses.size());
  for (const SlotUse& use : uses) words.push_back(cat(use.profile, " at ", use.start));
  return words.empty() ? "nothing" : join(words, ", ");
}

Result<std::vector<SlotChoice>> plan_layout(const std::vector<LayoutWish>& wishes,
                                            const std::vector<CardSlots>& cards) {
  Counts missing;
  for (const LayoutWish& wish : wishes) {
    int there = 0;
    for (const CardSlots& card : cards) there += count_of(card, wish.profile);
    missing.push_back(std::max(0, wish.count - there));
  }
  Reached reached = {{missing, {}}};
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const Counts none(missing.size(), 0);
    if (const auto done = reached.find(none); done != reached.end()) return done->second;
    reached = with_card(reached, CardOptions(cards[i], i, wishes, missing));
  }
  for (const auto& [left, chosen] : reached) {
    if (is_done(left)) return chosen;
  }
  return does_not_fit(wishes, missing, cards);
}

}  // namespace fuse
