#include "cmd/roff.h"

#include "base/text.h"
#include "base/version.h"

namespace fuse::cmd {

namespace {

// What roff would obey, or print as another character of its own.
std::string_view escape_of(char c) {
  switch (c) {
    case '\\':
      return "\\e";
    case '-':
      return "\\-";
    case '\'':
      return "\\(aq";
    case '"':
      return "\\(dq";
    case '`':
      return "\\(ga";
    case '^':
      return "\\(ha";
    case '~':
      return "\\(ti";
    case '\n':
      return " ";
    default:
      return {};
  }
}

}  // namespace

std::string roff_text(std::string_view text) {
  // A line that begins with a dot is a request; \& is nothing, and keeps it from that.
  std::string out = text.starts_with('.') ? "\\&" : "";
  for (const char c : text) {
    const std::string_view escape = escape_of(c);
    if (escape.empty()) {
      out += c;
    } else {
      out += escape;
    }
  }
  return out;
}

std::string roff_bold(std::string_view text) {
  return cat("\\fB", roff_text(text), "\\fR");
}

std::string roff_italic(std::string_view text) {
  return cat("\\fI", roff_text(text), "\\fR");
}

RoffPage::RoffPage(std::string_view name, int section, std::string_view summary)
    : text_(cat(".TH \"", roff_text(name), "\" ", section, " \"\" \"fuse ", version(), "\" \"",
                "Manual of fuse\"\n")) {
  heading("NAME");
  raw(cat(roff_text(name), " \\- ", roff_text(summary)));
}

void RoffPage::heading(std::string_view text) {
  text_ += cat(".SH \"", roff_text(text), "\"\n");
}

void RoffPage::subheading(std::string_view text) {
  text_ += cat(".SS \"", roff_text(text), "\"\n");
}

void RoffPage::paragraph(std::string_view text) {
  text_ += cat(".PP\n", roff_text(text), "\n");
}

void RoffPage::raw(std::string_view roff) {
  text_ += cat(roff, "\n");
}

void RoffPage::item(std::string_view label, std::string_view text) {
  text_ += cat(".TP\n", label, "\n", roff_text(text), "\n");
}

}  // namespace fuse::cmd
