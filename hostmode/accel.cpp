#include "hostmode/accel.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/json_reader.h"
#include "base/text.h"

namespace fuse {

using nlohmann::json;
using nlohmann::ordered_json;

std::optional<AccelPolicy> accel_policy_of(std::string_view text) {
  if (text == "auto") return AccelPolicy::automatic;
  if (text == "tcg") return AccelPolicy::tcg;
  if (text == "kvm") return AccelPolicy::kvm;
  return std::nullopt;
}

std::string to_text(const KvmTrial& trial) {
  const ordered_json out = {{"boot_id", trial.subject.boot_id},
                            {"kernel", trial.subject.kernel},
                            {"qemu", trial.subject.qemu},
                            {"works", trial.works},
                            {"reason", trial.reason}};
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<KvmTrial> parse_kvm_trial(std::string_view text) {
  const auto parsed = parse_json(text);
  if (!parsed) return parsed.error();
  JsonReader fields(*parsed, "");
  KvmTrial trial{.subject = {.boot_id = fields.text("boot_id").value_or(""),
                             .kernel = fields.text("kernel").value_or(""),
                             .qemu = fields.text("qemu").value_or("")},
                 .works = fields.flag("works").value_or(false),
                 .reason = fields.text("reason").value_or("")};
  if (auto done = fields.finish(); !done) return done.error();
  return trial;
}

std::optional<fs::path> find_program(const std::string& name, std::string_view path) {
  if (name.find('/') != std::string::npos) return fs::path(name);
  for (const std::string& dir : split(path, ':')) {
    const fs::path candidate = fs::path(dir.empty() ? "." : dir) / name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

Result<KvmSubject> read_kvm_subject(Host& host, const std::string& qemu) {
  const auto boot_id = read_boot_id(host);
  if (!boot_id) return boot_id.error();
  utsname kernel{};
  if (::uname(&kernel) < 0) return errno_error("ask for the kernel's version", errno);
  struct stat info {};
  if (::stat(qemu.c_str(), &info) < 0) return errno_error(cat("look at ", qemu), errno);
  return KvmSubject{
      .boot_id = *boot_id,
      .kernel = cat(std::string_view(kernel.release), " ", std::string_view(kernel.version)),
      .qemu = cat(qemu, " ", info.st_size, " ", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec)};
}

std::optional<KvmTrial> AccelChooser::cached(const KvmSubject& subject) {
  const auto text = host_.read_file(cache_);
  if (!text) return std::nullopt;
  const auto trial = parse_kvm_trial(*text);
  if (!trial || trial->subject != subject) return std::nullopt;
  return *trial;
}

Result<AccelChoice> AccelChooser::choose(AccelPolicy policy, const std::optional<Error>& objection,
                                         const KvmSubject& subject, const KvmTry& attempt) {
  if (policy == AccelPolicy::tcg) return AccelChoice{Accel::tcg, "TCG was asked for"};
  if (policy == AccelPolicy::kvm) {
    if (objection) return in_context("KVM was asked for", *objection);
    return AccelChoice{Accel::kvm, "KVM was asked for"};
  }
  if (objection) return AccelChoice{Accel::tcg, cat("no KVM: ", objection->message)};

  auto trial = cached(subject);
  if (!trial) {
    log_.info("trying whether guests run under KVM");
    const auto tried = attempt();
    trial = KvmTrial{.subject = subject,
                     .works = tried.has_value(),
                     .reason = tried ? "a guest booted under KVM"
                                     : cat("KVM opens, but a guest did not run under it: ",
                                           tried.error().message)};
    if (auto kept = host_.replace_file(cache_, to_text(*trial), 0600); !kept) {
      log_.warning("cannot remember whether KVM works", {{"reason", kept.error().message}});
    }
  }
  return AccelChoice{trial->works ? Accel::kvm : Accel::tcg, trial->reason};
}

std::optional<Error> kvm_objection(const fs::path& device) {
  const Fd kvm(::open(device.c_str(), O_RDWR | O_CLOEXEC));
  if (kvm.valid()) return std::nullopt;
  return errno_error(cat("open ", device.native()), errno);
}

}  // namespace fuse
