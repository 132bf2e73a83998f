#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/host.h"

namespace fuse {

// Where a bake stands.  Told when a step begins, about once a second while it
// goes on, and when it has ended well.
struct BakeProgress {
  std::string step{};  // "download the kernel"
  std::chrono::nanoseconds elapsed{};
  bool finished = false;
};
using BakeListener = std::function<void(const BakeProgress&)>;

// A program that a bake needs, and the Debian package that brings it.
struct Tool {
  std::string program{};
  std::string package{};
};

// Where programs are looked for: PATH of a plain user lacks the second half.
inline constexpr std::string_view default_tool_folders =
    "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

// Finds programs in `folders` ("/usr/bin:/sbin"): their paths by name.  The error
// names every one that is missing and how to install them all.
Result<std::map<std::string, std::string>> find_tools(std::span<const Tool> tools,
                                                      std::string_view folders);

// Runs the steps of a bake one after another in a folder of its own and tells the
// listener.
class BakeSteps {
 public:
  BakeSteps(Host& host, Clock& clock, BakeListener listener, std::stop_token stop)
      : host_(host), clock_(clock), listener_(std::move(listener)), stop_(std::move(stop)) {}

  // Runs `body` as the step `name`.
  Result<void> step(const std::string& name, const std::function<Result<void>()>& body);

  // Runs a program to its end in `dir` and returns what it printed.  One that
  // fails is an error with the command and its last lines; a stop request ends it.
  Result<std::string> run(const std::vector<std::string>& argv, const fs::path& dir);

 private:
  Result<ExitStatus> wait(Process& process);
  void tell(bool finished);

  Host& host_;
  Clock& clock_;
  BakeListener listener_;
  std::stop_token stop_;
  std::string step_{};
  SteadyTime began_{};
};

}  // namespace fuse
