#include "cmd/context.h"

#include <ostream>

#include "cmd/contexts.h"

namespace fuse::cmd {

namespace {

bool allowed(const Context& context, bool terminal) {
  if (context.options.colour == ColourChoice::always) return true;
  if (context.options.colour == ColourChoice::never) return false;
  return terminal && !forbids_colour(context.variables);
}

}  // namespace

bool Context::colour_out() const {
  return allowed(*this, terminal.out_is_terminal());
}
bool Context::colour_err() const {
  return allowed(*this, terminal.err_is_terminal());
}

Result<fs::path> Context::contexts_file() const {
  if (options.config.empty()) return cmd::contexts_file(variables);
  return directory / options.config;
}

void Context::note(std::string_view text) const {
  if (!options.quiet) err << text << '\n' << std::flush;
}

int Context::fail(const Error& error) const {
  print_error(err, error, colour_err());
  return exit_code_of(error);
}

int Context::fail_own(const Error& error) const {
  print_error(err, error, colour_err());
  return fuse_failed;
}

void print_error(std::ostream& out, const Error& error, bool colour) {
  out << (colour ? "\x1b[1;31merror:\x1b[0m " : "error: ") << error.message << '\n';
  // `reason` is for programs, and `hint` comes last.
  for (const auto& [name, value] : error.details) {
    if (name != "reason" && name != "hint") out << "  " << name << ": " << value << '\n';
  }
  if (const auto hint = error.details.find("hint"); hint != error.details.end()) {
    out << "  " << hint->second << '\n';
  } else if (error.message.starts_with("vm not found")) {
    out << "  what there is: fuse ps   with those that ended: fuse ps -a\n";
  }
  out << std::flush;
}

}  // namespace fuse::cmd
