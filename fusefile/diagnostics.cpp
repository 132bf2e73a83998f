#include "fusefile/diagnostics.h"

#include <algorithm>
#include <ostream>

#include "base/text.h"

namespace fuse {

namespace {

constexpr std::string_view red = "\033[1;31m";
constexpr std::string_view yellow = "\033[1;33m";
constexpr std::string_view bold = "\033[1m";
constexpr std::string_view green = "\033[1;32m";
constexpr std::string_view plain = "\033[0m";
constexpr std::size_t widest_excerpt = 160;

// Goes through the lines of a text, ended by \n, \r\n or \r as YAML has it.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
  }

  // The line of this number, from 1; none is asked for after a later one.
  std::string_view line(int number) {
    for (; number_ < number; ++number_) {
      const std::size_t end = rest_.find_first_of(ends);
      if (end == std::string_view::npos) return "";
      rest_.remove_prefix(rest_.substr(end).starts_with("\r\n") ? end + 2 : end + 1);
    }
    return rest_.substr(0, rest_.find_first_of(ends));
  }

 private:
  static constexpr std::string_view ends = "\r\n";
  std::string_view rest_;
  int number_ = 1;
};

// What goes below a line to get under its byte `column`: tabs stay, so that
// they are as wide as above, and a character of several bytes is one blank.
std::string indent_below(std::string_view line, int column) {
  std::string out;
  const auto length = std::min(line.size(), static_cast<std::size_t>(std::max(column, 1) - 1));
  for (const char c : line.substr(0, length)) {
    if (c == '\t') {
      out += '\t';
    } else if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) {
      out += ' ';
    }
  }
  return out;
}

std::string shown(std::string_view line) {
  std::string out = valid_utf8(line);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return is_control(c) && c != '\t'; }, '?');
  return out;
}

void print_excerpt(std::ostream& out, const Diagnostic& diagnostic, std::string_view line,
                   bool colour) {
  const std::string below = indent_below(line, diagnostic.where.column);
  if (line.empty() || below.size() > widest_excerpt) return;
  if (line.size() > widest_excerpt) {
    std::size_t cut = widest_excerpt;
    while (cut > 0 && (static_cast<unsigned char>(line[cut]) & 0xC0U) == 0x80U) --cut;
    line = line.substr(0, cut);
  }
  out << "  " << shown(line) << "\n  " << below << (colour ? green : "") << '^'
      << (colour ? plain : "") << '\n';
}

}  // namespace

std::string_view to_string(ProblemCode code) {
  switch (code) {
    case ProblemCode::syntax:
      return "F001";
    case ProblemCode::documents:
      return "F002";
    case ProblemCode::limit:
      return "F003";
    case ProblemCode::encoding:
      return "F004";
    case ProblemCode::unknown_key:
      return "F010";
    case ProblemCode::duplicate_key:
      return "F011";
    case ProblemCode::wrong_kind:
      return "F012";
    case ProblemCode::bad_version:
      return "F013";
    case ProblemCode::required:
      return "F020";
    case ProblemCode::exclusive:
      return "F021";
    case ProblemCode::bad_value:
      return "F022";
    case ProblemCode::out_of_range:
      return "F023";
    case ProblemCode::repeated_value:
      return "F024";
    case ProblemCode::bad_path:
      return "F025";
    case ProblemCode::reserved_path:
      return "F026";
    case ProblemCode::gpu_count:
      return "F030";
    case ProblemCode::gpu_profile:
      return "F031";
    case ProblemCode::gpu_profile_alone:
      return "F032";
    case ProblemCode::gpu_without_mig:
      return "F033";
    case ProblemCode::source_missing:
      return "F040";
    case ProblemCode::source_outside:
      return "F041";
    case ProblemCode::source_kind:
      return "F042";
    case ProblemCode::source_size:
      return "F043";
    case ProblemCode::ignore_pattern:
      return "F044";
  }
  return "F000";
}

std::string Diagnostic::text() const {
  return path.empty() ? message : cat(path, ": ", message);
}

void Diagnostics::add(Diagnostic diagnostic) {
  const auto after =
      std::upper_bound(all_.begin(), all_.end(), diagnostic,
                       [](const Diagnostic& a, const Diagnostic& b) { return a.where < b.where; });
  all_.insert(after, std::move(diagnostic));
}

bool Diagnostics::ok() const {
  return std::none_of(all_.begin(), all_.end(),
                      [](const Diagnostic& d) { return d.severity == Severity::error; });
}

namespace {

void print_place(std::ostream& out, const Diagnostic& diagnostic, std::string_view file) {
  out << file << ':';
  if (diagnostic.where.known()) {
    out << diagnostic.where.line << ':' << diagnostic.where.column << ':';
  }
  out << ' ';
}

// `lines` are those of the Fusefile.
void print_one(std::ostream& out, const Diagnostic& diagnostic, std::string_view file, Lines& lines,
               const PrintOptions& options) {
  const bool warning = diagnostic.severity == Severity::warning;
  if (options.colour) out << bold;
  print_place(out, diagnostic, file);
  if (options.colour) out << (warning ? yellow : red);
  if (warning) out << "warning: ";
  out << diagnostic.text();
  if (options.colour) out << plain;
  out << '\n';
  if (!options.excerpt) return;
  if (diagnostic.where.known()) {
    print_excerpt(out, diagnostic, lines.line(diagnostic.where.line), options.colour);
  }
  if (!diagnostic.hint.empty()) out << "  hint: " << diagnostic.hint << '\n';
}

}  // namespace

void print(std::ostream& out, const Diagnostic& diagnostic, std::string_view file,
           std::string_view text, const PrintOptions& options) {
  Lines lines(text);
  print_one(out, diagnostic, file, lines, options);
}

void print(std::ostream& out, const Diagnostics& diagnostics, std::string_view file,
           std::string_view text, const PrintOptions& options) {
  Lines lines(text);
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    print_one(out, diagnostic, file, lines, options);
  }
}

void print_hints(std::ostream& out, const Diagnostics& diagnostics, std::string_view file) {
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    if (diagnostic.hint.empty()) continue;
    print_place(out, diagnostic, file);
    out << "hint: " << diagnostic.hint << '\n';
  }
}

}  // namespace fuse
