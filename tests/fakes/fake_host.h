#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/host.h"
#include "base/text.h"

namespace fuse {

// A process that is what a test says.
struct FakeProcess final : Process {
  ExitStatus status{};
  bool running = false;  // false: it has ended with `status`
  std::vector<int> signals{};
  bool released = false;

  [[nodiscard]] pid_t pid() const override { return 4711; }
  [[nodiscard]] std::uint64_t start_time() const override { return 1; }
  Result<std::optional<ExitStatus>> wait(std::chrono::milliseconds /*timeout*/) override {
    return running ? std::nullopt : std::optional(status);
  }
  Result<void> signal(int number) override {
    signals.push_back(number);
    return {};
  }
  void release() override { released = true; }
};

// A machine that exists only in memory.  Set on_write to play the kernel, which
// may refuse a write or change other files; set on_spawn to play the programs.
struct FakeHost final : Host {
  std::map<fs::path, std::string> files{};
  std::map<fs::path, fs::path> links{};
  std::map<fs::path, mode_t> folders{{"/", 0755}};
  std::vector<SpawnSpec> spawned{};
  std::function<Result<void>(const fs::path&, std::string_view)> on_write =
      [](const fs::path&, std::string_view) { return Result<void>(); };
  std::function<Result<std::unique_ptr<Process>>(const SpawnSpec&)> on_spawn =
      [](const SpawnSpec&) {
        return Result<std::unique_ptr<Process>>(std::make_unique<FakeProcess>());
      };

  // A file with the folders above it.
  void add_file(const fs::path& file, std::string text) {
    add_folders(file.parent_path(), 0755);
    files[file] = std::move(text);
  }
  void add_link(const fs::path& link, fs::path target) {
    add_folders(link.parent_path(), 0755);
    links[link] = std::move(target);
  }

  Result<std::string> read_file(const fs::path& file) override {
    const auto found = files.find(resolve(file));
    if (found == files.end()) return missing("open", file);
    return found->second;
  }
  Result<void> write_file(const fs::path& file, std::string_view text) override {
    const fs::path real = resolve(file);
    if (!folders.contains(real.parent_path())) return missing("open", file);
    if (auto written = on_write(real, text); !written) return written;
    files[real] = text;
    return {};
  }
  Result<void> replace_file(const fs::path& file, std::string_view text, mode_t /*mode*/) override {
    if (!folders.contains(file.parent_path())) return missing("create", file);
    links.erase(file);  // a rename replaces the link, not what it leads to
    files[file] = text;
    return {};
  }
  Result<fs::path> read_link(const fs::path& link) override {
    const auto found = links.find(link);
    if (found == links.end()) return missing("read link", link);
    return found->second;
  }
  Result<std::vector<std::string>> list_dir(const fs::path& dir) override {
    const fs::path real = resolve(dir);
    if (!folders.contains(real)) return missing("list", dir);
    std::map<std::string, bool> names;
    const auto add = [&](const fs::path& path) {
      if (path != real && path.parent_path() == real) names[path.filename().native()] = true;
    };
    for (const auto& [path, text] : files) add(path);
    for (const auto& [path, target] : links) add(path);
    for (const auto& [path, mode] : folders) add(path);
    std::vector<std::string> out;
    for (const auto& [name, there] : names) out.push_back(name);
    return out;
  }
  Result<void> make_dirs(const fs::path& dir, mode_t mode) override {
    for (fs::path at = dir; at != at.root_path(); at = at.parent_path()) {
      if (files.contains(at)) {
        return Error{ErrorCode::internal, cat("create folder ", dir.native(), ": Not a directory")};
      }
    }
    add_folders(dir, mode);
    return {};
  }
  Result<void> remove_all(const fs::path& path) override {
    const auto below = [&](const auto& entry) {
      const auto [end, rest] =
          std::mismatch(path.begin(), path.end(), entry.first.begin(), entry.first.end());
      return end == path.end();
    };
    std::erase_if(files, below);
    std::erase_if(links, below);
    std::erase_if(folders, below);
    return {};
  }
  Result<std::unique_ptr<Process>> spawn(const SpawnSpec& spec) override {
    spawned.push_back(spec);
    return on_spawn(spec);
  }

 private:
  static Error missing(std::string_view what, const fs::path& path) {
    return {ErrorCode::not_found, cat(what, " ", path.native(), ": No such file or directory")};
  }
  void add_folders(const fs::path& dir, mode_t mode) {
    for (fs::path at = dir; at.has_relative_path(); at = at.parent_path()) {
      folders.emplace(at, mode);
    }
  }
  // The path with every link on the way followed.
  [[nodiscard]] fs::path resolve(const fs::path& path, int depth = 0) const {
    fs::path out;
    for (const fs::path& part : path) {
      out = (out / part).lexically_normal();
      const auto link = links.find(out);
      if (link == links.end() || depth > 16) continue;
      const fs::path target = (out.parent_path() / link->second).lexically_normal();
      out = resolve(target, depth + 1);
    }
    return out;
  }
};

}  // namespace fuse
