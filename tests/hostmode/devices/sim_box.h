#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/posix_host.h"
#include "base/write_apart.h"
#include "tests/hostmode/test_dir.h"

namespace fuse {

// A PCI function of a simulated machine.
struct SimFunction {
  std::string address{};
  std::string vendor = "10de";
  std::string device = "20b0";
  std::string code = "030200";  // class and programming interface
  std::string driver{};         // bound now
  std::string group{};
  int numa = -1;
  std::string native{};  // what the kernel binds when nothing overrides; empty: `driver`
  std::optional<bool> boot_vga{};
  std::string physical{};      // address, for a virtual function
  int virtual_functions = -1;  // -1: no SR-IOV
  std::uint64_t vram = 0;      // size of BAR 1
};

// A machine with a kernel: sysfs laid out as the real one under a folder of its
// own, read by the code that reads the real one.  Writes to driver_override,
// unbind, bind and drivers_probe do what the kernel does with them.
class SimBox final : public Host {
 public:
  SimBox();

  void add(const SimFunction& function);
  void add_file(const std::string& path, std::string_view text);
  void add_link(const std::string& path, const std::string& target);
  // A process with these files open.
  void add_process(int pid, const std::string& command, const std::string& unit,
                   const std::vector<std::string>& files);
  void remove_process(int pid);

  // Text that a program prints; an empty answer: there is no such program.
  struct Answer {
    std::string out{};
    std::string err{};
    int code = 0;
  };
  std::function<std::optional<Answer>(const std::vector<std::string>& argv)> on_run =
      [](const auto&) { return std::optional<Answer>(); };
  std::vector<std::vector<std::string>> ran{};

  // What the kernel answers to a write instead of doing it, by a part of the path
  // and, behind a blank, of the text.
  std::map<std::string, Error> refused{};
  std::vector<std::string> writes{};  // "PATH TEXT", in order
  // Called after each write to sysfs that was carried out.
  std::function<void(const std::string& path, const std::string& text)> after_write =
      [](const auto&, const auto&) {};

  // Writes as those that are given up; here they go as any other.
  [[nodiscard]] WriteWithin write_within() {
    return [this](const fs::path& file, std::string_view words, std::chrono::milliseconds) {
      return write_file(file, words);
    };
  }

  [[nodiscard]] const fs::path& root() const { return dir_.path(); }
  [[nodiscard]] std::string text(const std::string& path) const {
    return read_text(root() / fs::path(path).relative_path());
  }
  // The driver of a function now, "" for none.
  [[nodiscard]] std::string driver_of(const std::string& address) const;
  void bind(const std::string& address, const std::string& driver);
  void unbind(const std::string& address);

  Result<std::string> read_file(const fs::path& file) override { return real_.read_file(file); }
  Result<void> write_file(const fs::path& file, std::string_view text) override;
  Result<void> replace_file(const fs::path& file, std::string_view text, mode_t mode) override;
  Result<fs::path> read_link(const fs::path& link) override { return real_.read_link(link); }
  Result<std::vector<std::string>> list_dir(const fs::path& dir) override {
    return real_.list_dir(dir);
  }
  Result<void> make_dirs(const fs::path& dir, mode_t mode) override {
    return real_.make_dirs(dir, mode);
  }
  Result<void> remove_all(const fs::path& path) override { return real_.remove_all(path); }
  Result<std::unique_ptr<Process>> spawn(const SpawnSpec& spec) override;

 private:
  void obey(const std::string& path, const std::string& text);
  void probe(const std::string& address);
  [[nodiscard]] std::string at(const std::string& path) const {
    return (root() / fs::path(path).relative_path()).native();
  }

  TestDir dir_{};
  PosixHost real_;
  std::map<std::string, SimFunction> functions_{};
};

}  // namespace fuse
