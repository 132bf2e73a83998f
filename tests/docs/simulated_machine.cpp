// fuse on a machine that does not exist: an A100 for whole jobs, with a sound chip in
// its IOMMU group, and one that can be cut into MIG instances.
//
// Reads command lines from stdin, {"words","environment","directory"} in a line each,
// and answers each with a line {"code","out","err"}.  `agent serve` is answered at once
// and goes on until stdin ends, with its log on stderr.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/posix_host.h"
#include "base/text.h"
#include "cmd/commands.h"
#include "cmd/terminal.h"
#include "tests/hostmode/devices/vgpu_sim.h"

namespace fuse::cmd {

namespace {

constexpr std::string_view whole_card = "0000:0f:00.0";
constexpr std::string_view sliced_card = "0000:47:00.0";

// Devices and the driver's programs are the box's, all else is the real machine's.
class Machine final : public Host {
 public:
  Machine() {
    box_.add_file("/dev/vfio/vfio", "");
    box_.add_file("/dev/kvm", "");
    box_.add({.address = std::string(whole_card),
              .driver = "nvidia",
              .group = "20",
              .numa = 0,
              .vram = std::uint64_t{64} << 30U});
    box_.add({.address = "0000:0f:00.1",
              .device = "1aef",
              .code = "040300",
              .driver = "snd_hda_intel",
              .group = "20"});
    add_mig_card(box_, std::string(sliced_card), "20b0");
    for (const std::string_view card : {whole_card, sliced_card}) {
      smi_.add(std::string(card), "20b0", "NVIDIA A100-SXM4-40GB");
    }
    const std::vector<std::string> functions = {"0000:47:00.4", "0000:47:00.5"};
    mdev_.emplace(box_, smi_, std::string(sliced_card), functions);
  }

  [[nodiscard]] WriteWithin write_within() {
    return [this](const fs::path& file, std::string_view words, std::chrono::milliseconds) {
      return write_file(file, words);
    };
  }

  Result<std::string> read_file(const fs::path& file) override {
    const std::scoped_lock lock(mutex_);
    return at(file).read_file(file);
  }
  Result<void> write_file(const fs::path& file, std::string_view text) override {
    const std::scoped_lock lock(mutex_);
    return at(file).write_file(file, text);
  }
  Result<void> replace_file(const fs::path& file, std::string_view text, mode_t mode) override {
    const std::scoped_lock lock(mutex_);
    return at(file).replace_file(file, text, mode);
  }
  Result<fs::path> read_link(const fs::path& link) override {
    const std::scoped_lock lock(mutex_);
    return at(link).read_link(link);
  }
  Result<std::vector<std::string>> list_dir(const fs::path& dir) override {
    const std::scoped_lock lock(mutex_);
    return at(dir).list_dir(dir);
  }
  Result<void> make_dirs(const fs::path& dir, mode_t mode) override {
    return at(dir).make_dirs(dir, mode);
  }
  Result<void> remove_all(const fs::path& path) override { return at(path).remove_all(path); }
  Result<std::unique_ptr<Process>> spawn(const SpawnSpec& spec) override {
    static const std::set<std::string> programs = {"nvidia-smi", "dmesg", "timedatectl",
                                                   "modprobe"};
    const std::scoped_lock lock(mutex_);
    return programs.contains(spec.argv.front()) ? box_.spawn(spec) : real_.spawn(spec);
  }

 private:
  Host& at(const fs::path& path) {
    constexpr std::array<std::string_view, 5> simulated = {"/sys/bus/", "/sys/class/mdev_bus",
                                                           "/sys/kernel/iommu_groups",
                                                           "/sys/devices/pci", "/dev/"};
    const std::string& name = path.native();
    const auto holds = [&](std::string_view part) { return name.starts_with(part); };
    const bool of_box = name == "/dev" || std::ranges::any_of(simulated, holds);
    return of_box ? static_cast<Host&>(box_) : real_;
  }

  std::mutex mutex_{};
  SimBox box_{};
  SimSmi smi_{box_};
  std::optional<MdevSim> mdev_{};
  PosixHost real_{};
};

struct Done {
  int code = 0;
  std::string out{};
  std::string err{};
};

struct Command {
  std::vector<std::string> words{};
  std::map<std::string, std::string> environment{};
  fs::path directory{};

  [[nodiscard]] bool serves() const {
    return words.size() >= 2 && words[0] == "agent" && words[1] == "serve";
  }
};

int run_on(Machine& machine, const Command& command, std::ostream& out, std::ostream& err) {
  std::istringstream in;
  SystemClock clock;
  PosixTerminal terminal;
  Context context{
      .in = in, .out = out, .err = err, .host = machine, .clock = clock, .terminal = terminal};
  context.variables = [&command](const std::string& name) -> std::optional<std::string> {
    const auto found = command.environment.find(name);
    return found == command.environment.end() ? std::nullopt : std::optional(found->second);
  };
  context.watch_signals = [](const std::vector<int>& /*numbers*/, const SignalHandler& /*to*/) {
    return std::make_unique<SignalWatch>();
  };
  context.write_within = machine.write_within();
  context.directory = command.directory;
  return run(command.words, context);
}

Done answer(Machine& machine, const Command& command) {
  if (command.serves()) {
    std::thread([&machine, command] { run_on(machine, command, std::cerr, std::cerr); }).detach();
    return {};
  }
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_on(machine, command, out, err);
  return {code, out.str(), err.str()};
}

Command parse(const std::string& line) {
  const auto json = nlohmann::json::parse(line);
  return {.words = json.at("words"),
          .environment = json.at("environment"),
          .directory = json.at("directory").get<std::string>()};
}

[[noreturn]] void answer_lines() {
  Machine machine;
  for (std::string line; std::getline(std::cin, line);) {
    const Done done = answer(machine, parse(line));
    std::cout << nlohmann::json{{"code", done.code}, {"out", done.out}, {"err", done.err}}.dump()
              << std::endl;
  }
  // The agent's threads are at work yet, and the machine has to outlive them.
  ::_exit(0);
}

}  // namespace

}  // namespace fuse::cmd

int main() {
  fuse::cmd::answer_lines();
}
