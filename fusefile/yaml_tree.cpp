#include "fusefile/yaml_tree.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "fusefile/yaml_builder.h"

namespace fuse {

namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

// With every line ended by \n.
std::string with_unix_lines(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out += text[i];
      continue;
    }
    out += '\n';
    if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
  }
  return out;
}

Location location_at(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == std::string_view::npos ? offset : offset - start - 1;
  return {static_cast<int>(line) + 1, static_cast<int>(column) + 1};
}

// Where there is a control character that YAML does not have: all but tab, line
// feed and, of the upper ones, next line.
std::size_t find_control(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7F) return i;
    if (byte != 0xC2 || i + 1 == text.size()) continue;
    const auto next = static_cast<unsigned char>(text[i + 1]);
    if (next < 0xA0 && next != 0x85) return i;
  }
  return std::string_view::npos;
}

std::optional<Diagnostic> encoding_problem(std::string_view text) {
  const std::string valid = valid_utf8(text);
  if (valid != text) {
    const auto bad = std::mismatch(text.begin(), text.end(), valid.begin(), valid.end()).first;
    return yaml_problem(ProblemCode::encoding,
                        location_at(text, static_cast<std::size_t>(bad - text.begin())),
                        "invalid UTF-8");
  }
  const std::size_t control = find_control(text);
  if (control == std::string_view::npos) return std::nullopt;
  return yaml_problem(ProblemCode::encoding, location_at(text, control),
                      "control characters are not allowed");
}

std::vector<std::string_view> lines_before(std::string_view text, int line) {
  std::vector<std::string_view> lines;
  for (int i = 1; i < line; ++i) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

// Whether a document may start there: with `---`, or after `...`.
bool is_document_start(std::string_view text, Location where) {
  const auto lines = lines_before(text, where.line + 1);
  if (lines.empty()) return false;
  if (lines.back().starts_with("---")) return true;
  for (auto line = lines.rbegin() + 1; line != lines.rend(); ++line) {
    const std::string_view content = trim(*line);
    if (!content.empty() && content.front() != '#') return content.starts_with("...");
  }
  return false;
}

// A bracket or quote that is never closed is noticed at the end of the file only.
Diagnostic with_opening(Diagnostic problem, const YamlBuilder& builder) {
  const auto say = [&](std::string_view what, std::optional<Location> where) {
    if (where) problem.hint += cat(what, where->line, ":", where->column);
  };
  if (problem.message.ends_with(" flow not found")) say("; it begins at ", builder.innermost());
  if (problem.message.ends_with("illegal EOF in scalar"))
    say(" that begins after ", builder.last());
  return problem;
}

Diagnostic with_tab_hint(Diagnostic problem, std::string_view text) {
  const auto lines = lines_before(text, problem.where.line + 1);
  if (problem.where.known() && !lines.empty()) {
    const std::string_view line = lines.back();
    const std::size_t content = std::min(line.find_first_not_of(" \t"), line.size());
    if (line.substr(0, content).find('\t') != std::string_view::npos) {
      problem.hint = "indent with blanks: YAML takes no tabs there";
    }
  }
  return problem;
}

}  // namespace

std::optional<YamlDocument> parse_yaml(std::string_view text, const YamlLimits& limits,
                                       Diagnostics& diagnostics) {
  if (text.size() > limits.bytes) {
    diagnostics.add(yaml_problem(
        ProblemCode::limit, location_at(text, limits.bytes),
        cat("input is ", text.size(), " bytes, over the ", limits.bytes, " byte limit")));
    return std::nullopt;
  }
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  const std::string lines = with_unix_lines(text);
  if (auto problem = encoding_problem(lines)) {
    diagnostics.add(std::move(*problem));
    return std::nullopt;
  }

  YamlBuilder builder(limits);
  YamlEvents events = read_yaml_events(lines, builder);
  if (builder.failure()) {
    diagnostics.add(*builder.failure());
    return std::nullopt;
  }
  if (events.failure) {
    diagnostics.add(with_opening(with_tab_hint(std::move(*events.failure), lines), builder));
    return std::nullopt;
  }
  if (events.second_document) {
    if (!is_document_start(lines, *events.second_document)) {
      diagnostics.add(yaml_problem(ProblemCode::syntax, *events.second_document,
                                   "did not find expected <document start>"));
      return std::nullopt;
    }
    diagnostics.add({ProblemCode::documents, *events.second_document, "",
                     "parse fusefile: must contain exactly one yaml document, found more than one",
                     "keep one document, and remove the --- before the others"});
  }
  return std::move(builder).take();
}

}  // namespace fuse
