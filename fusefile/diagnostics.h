#pragma once

#include <compare>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace fuse {

// A place in a Fusefile: line and column from 1, the column in bytes.  Line 0
// means that the place is unknown.
struct Location {
  int line = 0;
  int column = 0;

  [[nodiscard]] bool known() const { return line > 0; }
  // NOLINTNEXTLINE(modernize-use-nullptr): it takes the hidden 0 of <=> for a pointer
  friend auto operator<=>(const Location&, const Location&) = default;
};

enum class Severity { error, warning };

// What kind of problem it is.  The codes that to_string gives never change
// their meaning; new kinds go to the end of their group.
enum class ProblemCode {
  syntax,             // F001
  documents,          // F002
  limit,              // F003
  encoding,           // F004
  unknown_key,        // F010
  duplicate_key,      // F011
  wrong_kind,         // F012
  bad_version,        // F013
  required,           // F020
  exclusive,          // F021
  bad_value,          // F022
  out_of_range,       // F023
  repeated_value,     // F024
  bad_path,           // F025
  reserved_path,      // F026
  gpu_count,          // F030
  gpu_profile,        // F031
  gpu_profile_alone,  // F032
  gpu_without_mig,    // F033
  source_missing,     // F040
  source_outside,     // F041
  source_kind,        // F042
  source_size,        // F043
  ignore_pattern,     // F044
};

std::string_view to_string(ProblemCode code);

// One problem of a Fusefile.  `path` is the field in the notation of the error
// texts ("services.db.ports[0]"), "" when no single field is to blame; `hint`
// says what to write instead, or is "".
struct Diagnostic {
  ProblemCode code = ProblemCode::syntax;
  Location where{};
  std::string path{};
  std::string message{};
  std::string hint{};
  Severity severity = Severity::error;

  // "path: message", or the message alone.
  [[nodiscard]] std::string text() const;
};

// The problems found so far, always sorted by place; those of one place stay in
// the order in which they were found.
class Diagnostics {
 public:
  void add(Diagnostic diagnostic);
  // Without errors; warnings may be there.
  [[nodiscard]] bool ok() const;
  [[nodiscard]] const std::vector<Diagnostic>& all() const& { return all_; }
  const std::vector<Diagnostic>& all() && = delete;

 private:
  std::vector<Diagnostic> all_{};
};

struct PrintOptions {
  bool excerpt = false;  // the source line, a caret below it and the hint
  bool colour = false;   // ANSI colours; only for terminals
};

// Prints `FILE:LINE:COLUMN: PATH: MESSAGE`, leaving out what is unknown, and
// what the options ask for.  `text` is the Fusefile that was parsed.
void print(std::ostream& out, const Diagnostic& diagnostic, std::string_view file,
           std::string_view text, const PrintOptions& options);
void print(std::ostream& out, const Diagnostics& diagnostics, std::string_view file,
           std::string_view text, const PrintOptions& options);
// Prints `FILE:LINE:COLUMN: hint: HINT` for each problem that has one, where the
// problems themselves are printed without.
void print_hints(std::ostream& out, const Diagnostics& diagnostics, std::string_view file);

}  // namespace fuse
