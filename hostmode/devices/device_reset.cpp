#include "hostmode/devices/device_reset.h"

#include "base/text.h"
#include "hostmode/devices/pci_address.h"
#include "hostmode/devices/pci_device.h"

namespace fuse {

namespace {

constexpr std::string_view hot_method = "hot";

// What was tried with one function.
struct Attempt {
  ResetOutcome outcome{};
  std::vector<std::string> failures{};  // of methods that the kernel lists
  bool hangs = false;
};

class Resetter {
 public:
  Resetter(Host& host, const ResetTools& tools) : host_(host), tools_(tools) {}

  Attempt by_itself(const std::string& address) {
    Attempt attempt{.outcome = {.address = address}};
    const fs::path list = dir_of(address) / "reset_method";
    const auto text = host_.read_file(list);
    std::vector<std::string> methods;
    for (std::string& word : split(text ? trim(*text) : "", ' ')) {
      if (!word.empty()) methods.push_back(std::move(word));
    }
    // The kernel goes through its list by itself: to know which method it was, it gets
    // one at a time.
    const bool choice = methods.size() > 1;
    for (const std::string& method : methods) {
      const auto done = choice ? chosen(list, method, address) : reset(address);
      if (done) {
        attempt.outcome.method = method;
        break;
      }
      attempt.failures.push_back(cat(method, ": ", done.error().message));
      attempt.hangs = done.error().code == ErrorCode::unavailable;
      if (attempt.hangs) break;
    }
    if (choice && !host_.write_file(list, trim(*text))) {
      attempt.failures.push_back("the list of its reset methods could not be put back");
    }
    return attempt;
  }

  // "" when it answers.
  std::string silence(const std::string& address) {
    const auto identity = read_pci_identity(host_, address);
    if (!identity) return identity.error().message;
    const auto live = read_live_vendor(host_, address);
    if (!live) return live.error().message;
    if (*live == identity->vendor) return "";
    return cat("its configuration space reads ", *live, " where its vendor ", identity->vendor,
               " should be");
  }

 private:
  static fs::path dir_of(const std::string& address) { return fs::path(pci_devices_dir) / address; }

  Result<void> chosen(const fs::path& list, const std::string& method, const std::string& address) {
    if (auto set = host_.write_file(list, method); !set) return set;
    return reset(address);
  }

  Result<void> reset(const std::string& address) {
    return tools_.writes.write(dir_of(address) / "reset", "1", tools_.writes.limit);
  }

  Host& host_;
  const ResetTools& tools_;
};

// Functions of the same slot lie on the same bus.
bool beside(const std::string& a, const std::string& b) {
  return pci_slot(a) == pci_slot(b);
}

void reset_by_bus(const std::vector<ResetTarget>& targets, std::vector<Attempt>& attempts,
                  const ResetTools& tools) {
  for (std::size_t i = 0; i < targets.size(); ++i) {
    Attempt& attempt = attempts[i];
    if (!attempt.outcome.method.empty() || attempt.hangs || !tools.hot_reset) continue;
    if (auto done = tools.hot_reset(targets[i].group, targets[i].address); !done) {
      // Only a function that should have had a reset is the worse for it.
      if (!attempt.failures.empty()) attempt.failures.push_back(cat("hot: ", done.error().message));
      continue;
    }
    for (Attempt& other : attempts) {
      const bool took_part = beside(other.outcome.address, targets[i].address);
      if (took_part && other.outcome.method.empty()) other.outcome.method = hot_method;
    }
  }
}

}  // namespace

std::vector<ResetOutcome> reset_functions(Host& host, const std::vector<ResetTarget>& targets,
                                          const ResetTools& tools) {
  Resetter resetter(host, tools);
  std::vector<Attempt> attempts;
  attempts.reserve(targets.size());
  for (const ResetTarget& target : targets) attempts.push_back(resetter.by_itself(target.address));
  reset_by_bus(targets, attempts, tools);
  std::vector<ResetOutcome> outcomes;
  for (Attempt& attempt : attempts) {
    ResetOutcome outcome = std::move(attempt.outcome);
    outcome.problem = resetter.silence(outcome.address);
    if (outcome.problem.empty() && outcome.method.empty() && !attempt.failures.empty()) {
      outcome.problem = cat("it could not be reset: ", join(attempt.failures, "; "));
    }
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

}  // namespace fuse
