#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/host.h"
#include "base/result.h"
#include "hostmode/vm_paths.h"

namespace fuse {

// The agent's hold on its state directory.  One process at a time has it.
class StateDir {
 public:
  static constexpr std::int64_t layout = 1;

  // Makes the directory where it is missing and takes it.  conflict, naming the
  // other process, when it is taken; unimplemented when a newer version left it.
  static Result<StateDir> take(Host& host, const StatePaths& paths);

  // Whether the directory is still the one that was taken: false when it was
  // removed, or made anew by somebody else.
  [[nodiscard]] bool is_there(const StatePaths& paths) const;

 private:
  explicit StateDir(Fd lock) : lock_(std::move(lock)) {}
  Fd lock_;
};

// A VM's folder that the agent cannot make sense of.  It is left as it is, until
// somebody asks for the VM's destruction.
struct QuarantinedVm {
  std::string uid{};
  std::string reason{};
  std::string since{};
  // Nothing is wrong with it: only a newer version knows how to handle it.
  bool newer = false;
};

std::string to_text(const std::vector<QuarantinedVm>& quarantined);

// What is set aside, in memory and in quarantine.json for whoever looks.
class Quarantine {
 public:
  Quarantine(Host& host, const Clock& clock, fs::path file)
      : host_(host), clock_(clock), file_(std::move(file)) {}

  // `reason` of the code unimplemented: it is of a newer version.
  Result<void> add(const std::string& uid, const Error& reason);
  Result<void> remove(const std::string& uid);
  // Empties it; what still is wrong will be found again.
  Result<void> clear();
  [[nodiscard]] std::vector<QuarantinedVm> list() const;
  [[nodiscard]] std::optional<QuarantinedVm> find(const std::string& uid) const;

 private:
  Host& host_;
  const Clock& clock_;
  fs::path file_;
  mutable std::mutex mutex_;
  std::map<std::string, QuarantinedVm> held_;
};

}  // namespace fuse
