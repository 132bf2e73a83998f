#include "fusefile/source_reach.h"

#include "base/quote.h"
#include "base/text.h"
#include "fusefile/guest_path.h"

namespace fuse {

namespace {

constexpr std::string_view outside_hint = "move it into the repository, or give --allow-outside";

// The nearest folder from `dir` upwards that has .git, else `dir`.
fs::path repository_of(const fs::path& dir, SourceTree& tree) {
  for (fs::path at = dir;; at = at.parent_path()) {
    if (tree.inspect(at / ".git")) return at;
    if (at == at.parent_path()) return dir;
  }
}

}  // namespace

SourceReach::SourceReach(const fs::path& fusefile, SourceTree& tree, const SourceOptions& options,
                         Report& report)
    : tree_(tree), options_(options), report_(report), dir_(fusefile.parent_path()) {
  if (auto resolved = tree_.canonical(dir_)) dir_ = *resolved;
  repository_ = repository_of(dir_, tree_);
}

void SourceReach::report_failure(const Error& error, std::string_view shown,
                                 std::string_view path) {
  if (error.code == ErrorCode::not_found) {
    report_.error(ProblemCode::source_missing, path, cat(in_quotes(shown), " does not exist"),
                  "write the path from the Fusefile's folder");
  } else {
    report_.error(ProblemCode::source_missing, path,
                  cat("cannot read ", in_quotes(shown), ": ", error.message),
                  "make it readable for you, or leave it out");
  }
}

bool SourceReach::admit_as_written(const std::string& source, std::string_view path) {
  if (has_newline_or_nul(source)) {
    report_.error(ProblemCode::bad_path, path, "must not contain newlines or NUL bytes",
                  "write one line");
    return false;
  }
  if (!source.starts_with('/') || options_.allow_outside) return true;
  report_.error(ProblemCode::source_outside, path,
                cat(in_quotes(source), " is an absolute path, which needs --allow-outside"),
                "write it relative to the Fusefile");
  return false;
}

bool SourceReach::admit(const fs::path& resolved, std::string_view shown, std::string_view path) {
  if (options_.allow_outside || is_at_or_below(resolved.native(), repository_.native())) {
    return true;
  }
  report_.error(ProblemCode::source_outside, path,
                cat(in_quotes(shown), " is outside the repository ",
                    in_quotes(repository_.native()), ", which needs --allow-outside"),
                std::string(outside_hint));
  return false;
}

std::optional<fs::path> SourceReach::resolve(const std::string& source, std::string_view path) {
  if (!admit_as_written(source, path)) return std::nullopt;
  auto resolved = tree_.canonical(dir_ / source);
  if (!resolved) {
    report_failure(resolved.error(), source, path);
    return std::nullopt;
  }
  if (!admit(*resolved, source, path)) return std::nullopt;
  return *resolved;
}

std::optional<fs::path> SourceReach::resolve_unfollowed(const std::string& source,
                                                        std::string_view path) {
  if (!admit_as_written(source, path)) return std::nullopt;
  const fs::path target = resolve_path(dir_.native(), source);
  auto parent = tree_.canonical(target.parent_path());
  if (!parent) {
    report_failure(parent.error(), source, path);
    return std::nullopt;
  }
  fs::path resolved = *parent / target.filename();
  if (!admit(resolved, source, path)) return std::nullopt;
  return resolved;
}

std::optional<SourceInfo> SourceReach::inspect(const fs::path& file, std::string_view shown,
                                               std::string_view path) {
  const auto info = tree_.inspect(file);
  if (info) return *info;
  report_failure(info.error(), shown, path);
  return std::nullopt;
}

std::vector<std::string> SourceReach::list(const fs::path& dir, std::string_view shown,
                                           std::string_view path) {
  auto names = tree_.list(dir);
  if (names) return *names;
  report_failure(names.error(), shown, path);
  return {};
}

std::optional<std::string> SourceReach::read(const fs::path& file, std::uint64_t most,
                                             std::string_view shown, std::string_view path) {
  auto bytes = tree_.read(file, most);
  if (bytes) return *bytes;
  report_failure(bytes.error(), shown, path);
  return std::nullopt;
}

std::optional<std::string> SourceReach::read_beside(std::string_view name, std::uint64_t most) {
  const auto file = tree_.canonical(dir_ / name);
  if (!file) {
    if (file.error().code != ErrorCode::not_found) report_failure(file.error(), name, "");
    return std::nullopt;
  }
  return read(*file, most, name, "");
}

}  // namespace fuse
