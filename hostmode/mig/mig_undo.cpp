#include "hostmode/mig/mig_undo.h"

#include <functional>

#include "base/text.h"
#include "hostmode/mig/mig_card.h"
#include "hostmode/mig/vgpu_host.h"

namespace fuse {

namespace {

Result<std::vector<GpuInstance>> instances_of(Host& host, const std::string& card) {
  const auto output = run_smi(host, {"mig", "-i", card, "-lgi"});
  if (!output) return output.error();
  return parse_gpu_instances(cat(output->out, output->err));
}

Result<void> drop_instances(Host& host, const std::string& card,
                            const std::function<bool(int id)>& goes) {
  const auto instances = instances_of(host, card);
  if (!instances) return instances.error();
  for (const GpuInstance& instance : *instances) {
    if (!goes(instance.id)) continue;
    auto gone = destroy_instance(host, {.address = card}, instance.id);
    if (!gone) return gone;
  }
  return {};
}

Result<void> leave_mig_mode(Host& host, const std::string& card) {
  const auto left = instances_of(host, card);
  if (!left) return left.error();
  return left->empty() ? switch_mig_mode(host, {.address = card}, false) : Result<void>();
}

// Every instance that was not there before, and those that were to go.
Result<void> undo_instances(Host& host, const MigJournal& journal) {
  for (const auto& [card, had] : journal.had) {
    auto gone = drop_instances(host, card, [&had = had](int id) { return !had.contains(id); });
    if (!gone) return gone;
  }
  for (const auto& [card, drop] : journal.drop) {
    auto gone = drop_instances(host, card, [&drop = drop](int id) { return drop.contains(id); });
    if (!gone) return gone;
  }
  return {};
}

Result<void> undo(Host& host, const MigJournal& journal, const KernelWrites& writes) {
  for (const std::string& path : journal.devices) {
    if (auto gone = remove_vgpu(host, path, writes); !gone) return gone;
  }
  if (auto undone = undo_instances(host, journal); !undone) return undone;
  for (const std::string& card : journal.switched) {
    if (auto left = leave_mig_mode(host, card); !left) return left;
  }
  return {};
}

}  // namespace

Result<void> begin_change(Host& host, const DevicePaths& paths, const MigJournal& journal) {
  if (auto made = host.make_dirs(paths.dir, 0755); !made) return made;
  return host.replace_file(paths.journal(), to_text(journal), 0644);
}

Result<void> end_change(Host& host, const DevicePaths& paths) {
  return host.remove_all(paths.journal());
}

Result<void> undo_change(Host& host, const DevicePaths& paths, const KernelWrites& writes) {
  const auto text = read_if_there(host, paths.journal());
  if (!text || text->empty()) return text ? Result<void>() : text.error();
  const auto journal = parse_journal(*text, paths.journal().native());
  if (!journal) return journal.error();
  if (auto undone = undo(host, *journal, writes); !undone) {
    return in_context(cat("undo the change that ", paths.journal().native(), " tells of"),
                      undone.error());
  }
  return end_change(host, paths);
}

}  // namespace fuse
