#include "fusefile/sources.h"

#include <utility>

#include "base/quote.h"
#include "base/text.h"
#include "fusefile/guest_path.h"
#include "fusefile/ignore.h"
#include "fusefile/limits.h"
#include "fusefile/report.h"
#include "fusefile/source_reach.h"

namespace fuse {

namespace {

constexpr std::size_t most_walked = 20'000;  // names looked at for one Fusefile
constexpr std::string_view ignore_file = ".fuseignore";

void read_file_bodies(const Fusefile& file, SourceReach& reach, LoadedSources& loaded,
                      Report& report) {
  std::map<std::size_t, fs::path> found;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < file.files.size(); ++i) {
    const Fusefile::FileEntry& entry = file.files[i];
    total += entry.content.value_or("").size();
    if (entry.source.empty()) continue;
    const std::string path = path_below(path_item("files", i), "source");
    const auto source = reach.resolve(entry.source, path);
    if (!source) continue;
    const auto info = reach.inspect(*source, entry.source, path);
    if (!info) continue;
    if (info->kind != SourceKind::regular) {
      report.error(ProblemCode::source_kind, path,
                   cat(in_quotes(entry.source), " is not a regular file"),
                   "name a file; `copy` takes folders");
      continue;
    }
    total += info->size;
    found[i] = *source;
  }
  if (total > most_file_bytes) {
    if (report.blamed("files")) return;
    report.error(ProblemCode::source_size, "files", too_large_files(total),
                 std::string(too_large_files_hint));
    return;
  }
  for (const auto& [i, source] : found) {
    const std::string path = path_below(path_item("files", i), "source");
    auto bytes = reach.read(source, most_file_bytes, file.files[i].source, path);
    if (bytes) loaded.file_bodies[i] = std::move(*bytes);
  }
}

// Expands `copy`.
class Copier {
 public:
  Copier(const Fusefile& file, SourceReach& reach, Report& report, LoadedSources& loaded)
      : file_(file), reach_(reach), report_(report), loaded_(loaded) {}

  void run() {
    read_ignore_file();
    for (std::size_t i = 0; i < file_.copy.size() && !full_; ++i) copy(i);
  }

 private:
  void read_ignore_file() {
    const auto text = reach_.read_beside(ignore_file, most_file_bytes);
    if (!text) return;
    if (const auto added = ignore_.add(*text); !added) {
      report_.error_near("copy", ProblemCode::ignore_pattern,
                         cat(ignore_file, ": ", added.error().message),
                         "close the bracket, or put a backslash before it");
    }
  }

  void copy(std::size_t index) {
    const Fusefile::CopyEntry& entry = file_.copy[index];
    index_ = index;
    from_ = path_below(path_item("copy", index), "from");
    to_ = path_below(path_item("copy", index), "to");
    if (entry.from.empty()) return;
    has_target_ = !entry.to.empty() && !report_.blamed(to_);
    target_ = resolve_path(file_.workspace, entry.to);
    const auto source = reach_.resolve_unfollowed(entry.from, from_);
    if (!source) return;
    const auto info = reach_.inspect(*source, entry.from, from_);
    if (!info) return;
    const std::string folder = clean_path(entry.from);
    below_ = info->kind == SourceKind::directory && folder != "." ? cat(folder, "/") : "";
    if (info->kind == SourceKind::directory) {
      walk(*source, "");
    } else if (check_kind(info->kind, entry.from)) {
      const bool into_folder =
          entry.to.ends_with('/') || entry.to == "." || entry.to.ends_with("/.");
      const std::string name = source->filename().native();
      add(*source, into_folder ? below_target(name) : target_, entry.from, *info);
    }
  }

  void walk(const fs::path& dir, const std::string& below) {
    const auto names = reach_.list(dir, below.empty() ? dir.native() : below, from_);
    for (const std::string& name : names) {
      if (full_) return;
      if (++walked_ > most_walked) {
        stop(cat("more than ", most_walked, " files and folders"));
        return;
      }
      const std::string path = below.empty() ? name : cat(below, "/", name);
      const auto info = reach_.inspect(dir / name, path, from_);
      if (!info) continue;
      const bool is_folder = info->kind == SourceKind::directory;
      if (ignore_.ignores(path, is_folder)) continue;
      if (is_folder) {
        walk(dir / name, path);
      } else if (check_kind(info->kind, path)) {
        add(dir / name, below_target(path), path, *info);
      }
    }
  }

  bool check_kind(SourceKind kind, const std::string& shown) {
    if (kind == SourceKind::regular) return true;
    report_.error(ProblemCode::source_kind, from_,
                  kind == SourceKind::symlink
                      ? cat(in_quotes(shown), " is a symlink; only files and folders are copied")
                      : cat(in_quotes(shown), " is neither a file nor a folder"),
                  cat("replace it by what it leads to, or leave it out by ", ignore_file));
    return false;
  }

  [[nodiscard]] std::string below_target(const std::string& name) const {
    return target_ == "/" ? cat("/", name) : cat(target_, "/", name);
  }

  void add(const fs::path& source, const std::string& guest_path, const std::string& shown,
           const SourceInfo& info) {
    if (!check_name(shown) || (has_target_ && !check_place(guest_path, shown))) return;
    total_ += info.size;
    if (total_ > most_copied_bytes) {
      stop(cat("total content is over the ", most_copied_bytes, " byte limit at ",
               in_quotes(shown)));
      return;
    }
    auto bytes = reach_.read(source, most_copied_bytes, shown, from_);
    if (!bytes || !has_target_) return;
    loaded_.copied[guest_path] = {cat(below_, shown), std::move(*bytes), info.executable};
    entry_of_[guest_path] = index_;
  }

  bool check_name(const std::string& shown) {
    if (!has_newline_or_nul(shown) && valid_utf8(shown) == shown) return true;
    report_.error(
        ProblemCode::bad_path, from_,
        cat("the name ", in_quotes(shown), " cannot be sent: it is not one line of UTF-8"),
        cat("rename it, or leave it out by ", ignore_file));
    return false;
  }

  bool check_place(const std::string& guest_path, const std::string& shown) {
    const std::string resolved = cat(in_quotes(shown), " resolves to ", guest_path);
    if (is_at_or_below(guest_path, reserved_dir)) {
      report_.error(ProblemCode::reserved_path, to_,
                    cat(resolved,
                        ", which is reserved for the guest agent's manifest, secrets and "
                        "credentials"),
                    "choose a place outside /fuse");
    } else if (const auto it = entry_of_.find(guest_path); it != entry_of_.end()) {
      report_.error(ProblemCode::repeated_value, to_,
                    cat(resolved, ", which ", path_item("copy", it->second), " already writes"),
                    "give each file a place of its own");
    } else {
      return true;
    }
    return false;
  }

  void stop(const std::string& why) {
    full_ = true;
    report_.error(ProblemCode::source_size, "copy", why,
                  "leave out more with .fuseignore, or fetch large artifacts in build");
  }

  const Fusefile& file_;
  SourceReach& reach_;
  Report& report_;
  LoadedSources& loaded_;
  IgnoreRules ignore_{};
  std::map<std::string, std::size_t> entry_of_{};
  std::string from_{};  // the fields that problems are shown at
  std::string to_{};
  std::string below_{};  // the folder that is copied, with a slash; "" for a file
  std::string target_{};
  bool has_target_ = true;  // false where the Fusefile itself is wrong about it
  std::size_t index_ = 0;
  std::size_t walked_ = 0;
  std::uint64_t total_ = 0;
  bool full_ = false;
};

}  // namespace

LoadedSources load_sources(const Fusefile& file, const fs::path& fusefile, SourceTree& tree,
                           const SourceOptions& options, Diagnostics& diagnostics) {
  Locations locations = file.locations;
  Report report(locations);
  for (const Diagnostic& problem : diagnostics.all()) report.blame(problem.path);
  SourceReach reach(fusefile, tree, options, report);
  LoadedSources loaded;
  read_file_bodies(file, reach, loaded, report);
  Copier(file, reach, report, loaded).run();
  report.finish(diagnostics);
  return loaded;
}

}  // namespace fuse
