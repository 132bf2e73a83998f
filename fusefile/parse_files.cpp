#include <map>
#include <utility>

#include "base/quote.h"
#include "base/text.h"
#include "fusefile/grammar.h"
#include "fusefile/guest_path.h"
#include "fusefile/limits.h"
#include "fusefile/sections.h"

namespace fuse {

namespace {

constexpr std::string_view one_line = "write one line";
constexpr std::string_view no_parent = "write the path that it leads to, without ..";

bool names_a_folder(std::string_view path) {
  return path.ends_with('/') || path == "." || path.ends_with("/.");
}

void check_file_path(const std::string& path, const std::string& written,
                     std::map<std::string, std::size_t>& seen, std::size_t index, Report& report) {
  if (written.empty()) {
    if (!report.blamed(path)) {
      report.error(ProblemCode::required, path, "is required", "name the file, as in conf/app.ini");
    }
  } else if (has_newline_or_nul(written)) {
    report.error(ProblemCode::bad_path, path, "must not contain newlines or NUL bytes",
                 std::string(one_line));
  } else if (has_parent_segment(written)) {
    report.error(ProblemCode::bad_path, path, "must not contain \"..\" segments",
                 std::string(no_parent));
  } else if (names_a_folder(written)) {
    report.error(ProblemCode::bad_path, path,
                 cat(in_quotes(written), " is a directory, not a file"),
                 "add the file's name; `copy` takes folders");
  } else if (const auto [first, is_new] = seen.emplace(clean_path(written), index); !is_new) {
    report.error(
        ProblemCode::repeated_value, path,
        cat(in_quotes(written), " is already written by ", path_item("files", first->second)),
        "keep one of the two");
  }
}

void check_file_body(const YamlField& field, const Fusefile::FileEntry& entry, Report& report) {
  const bool said = report.blamed(field.path) || report.blamed(path_below(field.path, "source")) ||
                    report.blamed(path_below(field.path, "content"));
  if (!entry.source.empty() && entry.content) {
    report.error(ProblemCode::exclusive, field.path, "source and content are mutually exclusive",
                 "keep one of the two");
  } else if (entry.source.empty() && !entry.content && !said) {
    report.error(ProblemCode::required, field.path, "source or content is required",
                 "add content: TEXT, or source: a file beside the Fusefile");
  }
}

bool check_copy_target(const std::string& path, const std::string& to, Report& report) {
  if (to.empty()) {
    if (!report.blamed(path)) {
      report.error(ProblemCode::required, path, "is required",
                   "name the place in the guest; . is the workspace");
    }
  } else if (has_newline_or_nul(to)) {
    report.error(ProblemCode::bad_path, path, "must not contain newlines or NUL bytes",
                 std::string(one_line));
  } else if (has_parent_segment(to)) {
    report.error(ProblemCode::bad_path, path, "must not contain \"..\" segments",
                 std::string(no_parent));
  } else {
    return true;
  }
  return false;
}

// Where the entries so far go, by their resolved targets.
using CopyTargets = std::map<std::string, std::size_t>;

void check_copy_place(std::size_t index, const std::string& to, const std::string& target,
                      CopyTargets& targets, Report& report) {
  const std::string path = path_below(path_item("copy", index), "to");
  const std::string resolved = cat(in_quotes(to), " resolves to ", target);
  if (is_at_or_below(target, reserved_dir)) {
    report.error(ProblemCode::reserved_path, path,
                 cat(resolved,
                     ", which is reserved for the guest agent's manifest, secrets and "
                     "credentials"),
                 "choose a place outside /fuse");
  } else if (const auto [first, is_new] = targets.emplace(target, index); !is_new) {
    report.error(ProblemCode::repeated_value, path,
                 cat(resolved, ", which ", path_item("copy", first->second), " already writes"),
                 "give each entry a place of its own");
  }
}

}  // namespace

std::string too_large_files(std::uint64_t bytes) {
  return cat("total content is ", bytes, " bytes, over the ", most_file_bytes,
             " byte limit; fetch large artifacts from `setup` instead");
}

std::vector<Fusefile::FileEntry> read_files(MapReader& top, Report& report) {
  std::vector<Fusefile::FileEntry> files;
  std::map<std::string, std::size_t> seen;
  std::uint64_t total = 0;
  for (const YamlField& field : top.items("files")) {
    MapReader map(field.node, "files[]", field.path, report);
    Fusefile::FileEntry entry;
    entry.path = map.text_or_empty("path");
    entry.source = map.text_or_empty("source");
    entry.content = map.text("content");
    entry.mode = map.text_or_empty("mode");
    if (!report.blamed(field.path)) {
      check_file_path(map.path_of("path"), entry.path, seen, files.size(), report);
      check_file_body(field, entry, report);
    }
    if (!entry.mode.empty() && !is_octal_mode(entry.mode)) {
      report.error(ProblemCode::bad_value, map.path_of("mode"),
                   cat("invalid octal mode ", in_quotes(entry.mode), " (expected e.g. \"0644\")"),
                   "write three octal digits, as in 644, or 755 for a program");
    }
    total += entry.content.value_or("").size();
    files.push_back(std::move(entry));
  }
  if (total > most_file_bytes) {
    report.error(ProblemCode::source_size, "files", too_large_files(total),
                 std::string(too_large_files_hint));
  }
  return files;
}

std::vector<Fusefile::CopyEntry> read_copy(MapReader& top, std::string_view workspace,
                                           Report& report) {
  std::vector<Fusefile::CopyEntry> copy;
  CopyTargets targets;
  for (const YamlField& field : top.items("copy")) {
    MapReader map(field.node, "copy[]", field.path, report);
    Fusefile::CopyEntry entry{map.text_or_empty("from"), map.text_or_empty("to")};
    copy.push_back(entry);
    if (report.blamed(field.path)) continue;
    if (entry.from.empty() && !report.blamed(map.path_of("from"))) {
      report.error(ProblemCode::required, map.path_of("from"), "is required",
                   "name a file or folder, relative to the Fusefile");
    }
    const std::string to = map.path_of("to");
    if (check_copy_target(to, entry.to, report)) {
      check_copy_place(copy.size() - 1, entry.to, resolve_path(workspace, entry.to), targets,
                       report);
    }
  }
  return copy;
}

}  // namespace fuse
