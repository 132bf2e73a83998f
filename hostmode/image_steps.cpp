#include "hostmode/image_steps.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>

#include "base/fd.h"
#include "base/text.h"

namespace fuse {
namespace {

using std::chrono::seconds;

constexpr std::size_t quoted_lines = 15;
constexpr std::string_view out_file = "out.log";
constexpr std::string_view err_file = "err.log";

std::string last_lines(std::string_view text) {
  std::vector<std::string> lines = split(trim(text), '\n');
  const std::size_t skipped = lines.size() - std::min(lines.size(), quoted_lines);
  return join(std::span(lines).subspan(skipped), "\n  ");
}

std::string shown(const std::vector<std::string>& argv) {
  std::vector<std::string> words;
  for (const std::string& word : argv) {
    const bool plain = !word.empty() && std::ranges::all_of(word, [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
             std::string_view("-_=./:,+%@").find(c) != std::string_view::npos;
    });
    words.push_back(plain ? word : shell_quote(word));
  }
  return join(words, " ");
}

std::string how_it_ended(const ExitStatus& status) {
  if (status.signal != 0) return cat("was killed by signal ", status.signal);
  return cat("exited with ", status.code);
}

Result<Fd> fresh_file(const fs::path& file) {
  Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid()) return errno_error(cat("create ", file.native()), errno);
  return fd;
}

}  // namespace

Result<std::map<std::string, std::string>> find_tools(std::span<const Tool> tools,
                                                      std::string_view folders) {
  std::map<std::string, std::string> found;
  std::vector<std::string> missing;
  std::vector<std::string> packages;
  for (const Tool& tool : tools) {
    for (const std::string& folder : split(folders, ':')) {
      const std::string path = cat(folder, "/", tool.program);
      if (!folder.empty() && ::access(path.c_str(), X_OK) == 0) found.emplace(tool.program, path);
    }
    if (found.contains(tool.program)) continue;
    missing.push_back(cat(tool.program, " (package ", tool.package, ")"));
    if (std::ranges::find(packages, tool.package) == packages.end()) {
      packages.push_back(tool.package);
    }
  }
  if (missing.empty()) return found;
  return Error{ErrorCode::unavailable,
               cat("programs that a bake needs are missing: ", join(missing, ", "),
                   "; install them: apt-get install ", join(packages, " "))};
}

Result<void> BakeSteps::step(const std::string& name, const std::function<Result<void>()>& body) {
  step_ = name;
  began_ = clock_.steady();
  tell(false);
  if (auto done = body(); !done) return in_context(name, done.error());
  tell(true);
  return {};
}

Result<std::string> BakeSteps::run(const std::vector<std::string>& argv, const fs::path& dir) {
  const auto out = fresh_file(dir / out_file);
  if (!out) return out.error();
  const auto err = fresh_file(dir / err_file);
  if (!err) return err.error();
  SpawnSpec spec;
  spec.argv = argv;
  spec.directory = dir;
  spec.stdout_fd = out->get();
  spec.stderr_fd = err->get();
  const auto process = host_.spawn(spec);
  if (!process) return process.error();
  const auto status = wait(**process);
  if (!status) return status.error();
  auto printed = host_.read_file(dir / out_file);
  if (!printed || status->success()) return printed;
  const auto complaint = host_.read_file(dir / err_file);
  std::string said = complaint ? last_lines(*complaint) : std::string();
  if (said.empty()) said = last_lines(*printed);
  return Error{ErrorCode::unavailable, cat("`", shown(argv), "` ", how_it_ended(*status),
                                           said.empty() ? "" : ":\n  ", valid_utf8(said))};
}

Result<ExitStatus> BakeSteps::wait(Process& process) {
  while (true) {
    const auto ended = process.wait(seconds(1));
    if (!ended) return ended.error();
    if (ended->has_value()) return **ended;
    if (!stop_.stop_requested()) {
      tell(false);
      continue;
    }
    // A package manager puts things in order on TERM; it gets some time for that.
    static_cast<void>(process.signal(SIGTERM));
    static_cast<void>(process.wait(seconds(20)));
    return Error{ErrorCode::unavailable, "stopped on request"};
  }
}

void BakeSteps::tell(bool finished) {
  if (listener_) listener_({step_, clock_.steady() - began_, finished});
}

}  // namespace fuse
