#include "fusefile/report.h"

#include <algorithm>
#include <utility>

#include "base/quote.h"
#include "base/text.h"

namespace fuse {

namespace {

constexpr std::size_t longest_segment = 100;

}  // namespace

void Report::error(ProblemCode code, std::string_view path, std::string message, std::string hint) {
  error_at(locations_.find(path), code, path, std::move(message), std::move(hint));
}

void Report::error_at(Location where, ProblemCode code, std::string_view path, std::string message,
                      std::string hint) {
  blamed_.emplace(path);
  found_.push_back({code, where, std::string(path), std::move(message), std::move(hint)});
}

void Report::error_near(std::string_view near, ProblemCode code, std::string message,
                        std::string hint) {
  found_.push_back({code, locations_.find(near), "", std::move(message), std::move(hint)});
}

bool Report::blamed(std::string_view path) const {
  return blamed_.contains(path);
}

void Report::finish(Diagnostics& diagnostics) {
  // Sorted first, so that each goes to the end.
  std::stable_sort(found_.begin(), found_.end(),
                   [](const Diagnostic& a, const Diagnostic& b) { return a.where < b.where; });
  for (Diagnostic& diagnostic : found_) diagnostics.add(std::move(diagnostic));
  found_.clear();
}

std::string path_below(std::string_view path, std::string_view name) {
  std::string segment(name);
  if (name.size() > longest_segment) {
    segment = cat(valid_utf8(name.substr(0, longest_segment)), "...");
  }
  if (const std::string shown = in_quotes(segment);
      shown.size() != segment.size() + 2 || segment.empty()) {
    segment = shown;
  }
  return path.empty() ? segment : cat(path, ".", segment);
}

std::string path_item(std::string_view path, std::size_t index) {
  return cat(path, "[", index, "]");
}

}  // namespace fuse
