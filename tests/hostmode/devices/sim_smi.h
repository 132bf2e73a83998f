#pragma once

#include <map>
#include <string>
#include <vector>

#include "hostmode/mig/known_cards.h"
#include "tests/hostmode/devices/sim_box.h"

namespace fuse {

// nvidia-smi of a simulated machine: its cards, their MIG mode and instances, with
// the words and tables of the real one.
class SimSmi {
 public:
  struct Instance {
    SlotProfile profile{};
    int start = 0;
    bool compute = true;
  };
  struct Card {
    std::string address{};  // as sysfs writes it
    std::string uuid{};
    std::string model{};
    std::string device{};  // for its slots
    bool mig = false;
    bool pending = false;
    bool needs_reset = false;             // as cards before Hopper
    std::map<int, Instance> instances{};  // by id
  };

  // Answers for the box from now on; must not outlive it.
  explicit SimSmi(SimBox& box);
  Card& add(const std::string& address, const std::string& device, const std::string& model);
  Card& card(const std::string& address);

  // Faults.
  int refuse_creation = -1;     // the n-th from now, counted from 0
  bool fail_compute = false;    // instances get no compute instance
  bool lose_creations = false;  // says it made them and did not
  bool reset_refused = false;
  // Called before every command that changes something.
  std::function<void()> before_change = [] {};
  // Called when an instance was made or destroyed.
  std::function<void()> after_change = [] {};
  int changes = 0;

 private:
  std::optional<SimBox::Answer> answer(const std::vector<std::string>& argv);
  SimBox::Answer query_gpu() const;
  SimBox::Answer listing() const;
  SimBox::Answer query(const Card& card) const;
  SimBox::Answer set_mode(Card& card, bool on);
  SimBox::Answer reset(Card& card);
  SimBox::Answer mig(const std::vector<std::string>& argv);
  SimBox::Answer profiles(const Card& card) const;
  SimBox::Answer create(Card& card, const std::string& what);
  SimBox::Answer destroy(Card& card, int id);
  [[nodiscard]] std::string number(const Card& card) const;

  SimBox& box_;
  std::vector<Card> cards_{};
};

}  // namespace fuse
