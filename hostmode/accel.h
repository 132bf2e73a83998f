#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/host.h"
#include "base/log.h"
#include "base/result.h"
#include "hostmode/vm_record.h"

namespace fuse {

enum class AccelPolicy { automatic, tcg, kvm };

std::optional<AccelPolicy> accel_policy_of(std::string_view text);  // auto, tcg, kvm

// What a trial of KVM was made on.  One that differs in anything is made again.
struct KvmSubject {
  std::string boot_id{};
  std::string kernel{};  // uname -rv
  std::string qemu{};    // the binary's path, size and time of change
  bool operator==(const KvmSubject&) const = default;
};

struct KvmTrial {
  KvmSubject subject{};
  bool works = false;
  std::string reason{};
};

std::string to_text(const KvmTrial& trial);
Result<KvmTrial> parse_kvm_trial(std::string_view text);

Result<KvmSubject> read_kvm_subject(Host& host, const std::string& qemu);

// The program that `name` means: itself when it has a slash, else the first
// executable of that name in PATH-like `path`.
std::optional<fs::path> find_program(const std::string& name, std::string_view path);

// How VMs are run, and why.
struct AccelChoice {
  Accel accel = Accel::tcg;
  std::string reason{};
};

// Boots a guest without a disk under KVM; an error says how it failed.
using KvmTry = std::function<Result<void>()>;

// Decides once and remembers: KVM opens on machines where guests hang under it,
// so under `automatic` it is used only when a guest has said hello.
class AccelChooser {
 public:
  AccelChooser(Host& host, Log& log, fs::path cache)
      : host_(host), log_(log), cache_(std::move(cache)) {}

  // An error only under `kvm`, when it cannot be.  `objection` says why
  // /dev/kvm cannot be opened, if so.
  Result<AccelChoice> choose(AccelPolicy policy, const std::optional<Error>& objection,
                             const KvmSubject& subject, const KvmTry& attempt);

 private:
  std::optional<KvmTrial> cached(const KvmSubject& subject);

  Host& host_;
  Log& log_;
  fs::path cache_;
};

// Why the device, /dev/kvm, cannot be opened, or nothing.
std::optional<Error> kvm_objection(const fs::path& device);

}  // namespace fuse
