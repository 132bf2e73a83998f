#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "hostmode/devices/device_reset.h"
#include "tests/catch.h"
#include "tests/hostmode/devices/boxes.h"

namespace fuse {
namespace {

using Texts = std::vector<std::string>;

const std::string card = "0000:09:00.0";
const std::string sound = "0000:09:00.1";

std::string dir_of(const std::string& address) {
  return cat("/sys/bus/pci/devices/", address);
}

// A consumer card on vfio-pci, and what hot resets were asked of it.
struct Bench {
  Bench() { make_consumer_box(box); }

  std::vector<ResetOutcome> reset(const Texts& addresses = {card}) {
    std::vector<ResetTarget> targets;
    for (const std::string& address : addresses) targets.push_back({address, "17"});
    return reset_functions(box, targets,
                           {.writes = {.write = box.write_within()},
                            .hot_reset = [this](const std::string& group, const std::string& of) {
                              hot.push_back(cat(group, " ", of));
                              return hot_answer;
                            }});
  }
  void lists(const std::string& address, const std::string& methods) {
    box.add_file(cat(dir_of(address), "/reset_method"), methods);
  }
  // The kernel's writes to files of the card, without its folder.
  [[nodiscard]] Texts writes() const {
    Texts out;
    for (const std::string& write : box.writes) {
      if (write.starts_with(dir_of(card))) out.push_back(write.substr(dir_of(card).size() + 1));
    }
    return out;
  }

  SimBox box;
  Texts hot;
  Result<void> hot_answer;
};

Error no_tty() {
  return errno_error("write", ENOTTY);
}

TEST_CASE("a function is reset by one method, which is known, and the list stays as it was") {
  Bench bench;
  const auto outcomes = bench.reset();
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].method == "flr");
  CHECK(outcomes[0].problem.empty());
  CHECK(bench.writes() == Texts{"reset_method flr", "reset 1", "reset_method flr bus"});
  CHECK(bench.hot.empty());
}

TEST_CASE("the only method is not chosen before it is used") {
  Bench bench;
  bench.lists(card, "bus\n");
  CHECK(bench.reset()[0].method == "bus");
  CHECK(bench.writes() == Texts{"reset 1"});
}

TEST_CASE("a method that does not work gives way to the next one") {
  Bench bench;
  bench.box.after_write = [&](const std::string& path, const std::string& text) {
    if (!path.ends_with("/reset_method")) return;
    bench.box.refused.clear();
    if (text == "flr") bench.box.refused.emplace("/reset 1", no_tty());
  };
  CHECK(bench.reset()[0].method == "bus");
  CHECK(bench.writes().back() == "reset_method flr bus");
}

TEST_CASE("functions without a reset of their own are reset with their bus, once") {
  Bench bench;
  // The kernel lists a reset of the bus for a card whose companions it had not seen
  // yet, and then refuses it.
  bench.lists(card, "bus\n");
  bench.box.refused.emplace(cat(card, "/reset 1"), no_tty());
  REQUIRE(bench.box.remove_all(cat(dir_of(sound), "/reset_method")));
  const auto outcomes = bench.reset({card, sound});
  CHECK(outcomes[0].method == "hot");
  CHECK(outcomes[0].problem.empty());
  CHECK(outcomes[1].method == "hot");
  CHECK(bench.hot == Texts{cat("17 ", card)});
}

TEST_CASE("a reset that should work and does not is a problem, none at all is not") {
  Bench bench;
  bench.hot_answer = Error{ErrorCode::conflict, "a hot reset would take along group 3"};
  SECTION("one that the kernel lists") {
    bench.box.refused.emplace(cat(card, "/reset 1"), no_tty());
    const auto outcome = bench.reset()[0];
    CHECK(outcome.method.empty());
    CHECK(outcome.problem ==
          "it could not be reset: flr: write: Inappropriate ioctl for device; bus: write: "
          "Inappropriate ioctl for device; hot: a hot reset would take along group 3");
  }
  SECTION("none") {
    REQUIRE(bench.box.remove_all(cat(dir_of(card), "/reset_method")));
    const auto outcome = bench.reset()[0];
    CHECK(outcome.method.empty());
    CHECK(outcome.problem.empty());
  }
  SECTION("one that does not come back: nothing else is tried") {
    bench.box.refused.emplace(cat(card, "/reset 1"),
                              Error{ErrorCode::unavailable, "the kernel did not come back"});
    CHECK(bench.reset()[0].problem == "it could not be reset: flr: the kernel did not come back");
    CHECK(bench.hot.empty());
  }
}

TEST_CASE("a function that does not answer after its reset is told by what it reads") {
  Bench bench;
  bench.box.add_file(cat(dir_of(card), "/config"), std::string(64, '\xff'));
  const auto outcome = bench.reset()[0];
  CHECK(outcome.method == "flr");
  CHECK(outcome.problem == "its configuration space reads ffff where its vendor 10de should be");
  CHECK_FALSE(bench.reset({"0000:77:00.0"})[0].problem.empty());
}

}  // namespace
}  // namespace fuse
