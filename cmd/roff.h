#pragma once

#include <string>
#include <string_view>

namespace fuse::cmd {

// `text` so that roff prints it as it is, wherever it stands: on a line of its own
// or in the argument of a macro.
std::string roff_text(std::string_view text);
std::string roff_bold(std::string_view text);
std::string roff_italic(std::string_view text);

// A manual page, written from top to bottom in the macros of man(7).
class RoffPage {
 public:
  RoffPage(std::string_view name, int section, std::string_view summary);

  void heading(std::string_view text);
  void subheading(std::string_view text);
  void paragraph(std::string_view text);
  // A line that is roff already.
  void raw(std::string_view roff);
  // A label that is roff, and behind it what it means.
  void item(std::string_view label, std::string_view text);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace fuse::cmd
