#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <sstream>
#include <utility>

#include "base/text.h"
#include "fusefile/yaml_breaks.h"
#include "fusefile/yaml_builder.h"

namespace fuse {

namespace {

Location location_of(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {mark.line + 1, mark.column + 1};
}

// The parser makes a single byte of the escapes \N and \_ (next line, no-break
// space).  In a text that was UTF-8 no other byte can be astray.
std::string with_whole_characters(const std::string& value) {
  constexpr std::string_view replacement = "\xEF\xBF\xBD";
  const std::string valid = valid_utf8(value);
  if (valid == value) return value;
  std::string out;
  std::size_t at = 0;
  for (std::size_t i = 0; i < valid.size(); ++at) {
    const auto byte = static_cast<unsigned char>(value[at]);
    const bool astray = byte == 0x85 || byte == 0xA0;
    if (astray && std::string_view(valid).substr(i).starts_with(replacement)) {
      out += '\xC2';
      i += replacement.size();
    } else {
      ++i;
    }
    out += value[at];
  }
  return out;
}

// Takes no notice of anything.
class QuietHandler : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/,
                       YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}
};

// Notes only where a document starts.
class StartHandler final : public QuietHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { start = location_of(mark); }

  std::optional<Location> start{};
};

// Notes the last scalar of a document.
class ScalarHandler final : public QuietHandler {
 public:
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& value) override {
    scalar = value;
  }

  std::string scalar{};
};

// `value` as the parser understood it, with the line breaks at its end that the
// parser leaves out.
std::string with_breaks_at_end(std::string value, std::string_view scalar, int parent_indent) {
  if (const auto token = quoted_with_end(scalar)) {
    std::istringstream stream(*token);
    YAML::Parser parser(stream);
    ScalarHandler handler;
    parser.HandleNextDocument(handler);
    if (!handler.scalar.ends_with('x')) return value;
    handler.scalar.pop_back();
    return std::move(handler.scalar);
  }
  if (const auto breaks = kept_breaks(scalar, parent_indent)) {
    value.erase(value.find_last_not_of('\n') + 1);
    value.append(*breaks, '\n');
  }
  return value;
}

// Hands the events of one document to a builder.
class BuildingHandler final : public YAML::EventHandler {
 public:
  BuildingHandler(std::string_view text, YamlBuilder& builder) : text_(text), builder_(builder) {}

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    builder_.null(location_of(mark), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    builder_.alias(location_of(mark), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const std::string_view scalar = scalar_at(text_, static_cast<std::size_t>(mark.pos));
    const auto around = builder_.innermost();
    const int parent_indent = around ? around->column - 1 : -1;
    builder_.scalar(location_of(mark), tag, anchor,
                    with_whole_characters(with_breaks_at_end(value, scalar, parent_indent)));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    builder_.begin(YamlNode::Kind::list, location_of(mark), tag, anchor);
  }
  void OnSequenceEnd() override { builder_.end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    builder_.begin(YamlNode::Kind::map, location_of(mark), tag, anchor);
  }
  void OnMapEnd() override { builder_.end(); }

 private:
  std::string_view text_;
  YamlBuilder& builder_;
};

// A quote that is open where the last line ends is closed by the parser without
// a word, but not where a mark of the document's end comes first.
constexpr std::string_view end_mark = "...\n";

std::string with_end_mark(const std::string& text) {
  return text.ends_with('\n') ? cat(text, end_mark) : text;
}

std::string_view message_of(const YAML::Exception& problem, const std::string& text) {
  const bool at_our_mark =
      problem.mark.pos >= 0 && static_cast<std::size_t>(problem.mark.pos) >= text.size();
  return at_our_mark && problem.msg == YAML::ErrorMsg::DOC_IN_SCALAR
             ? YAML::ErrorMsg::EOF_IN_SCALAR
             : std::string_view(problem.msg);
}

}  // namespace

YamlEvents read_yaml_events(const std::string& text, YamlBuilder& builder) {
  YamlEvents events;
  StartHandler second;
  try {
    std::istringstream stream(with_end_mark(text));
    YAML::Parser parser(stream);
    BuildingHandler first(text, builder);
    if (parser.HandleNextDocument(first)) parser.HandleNextDocument(second);
  } catch (const YAML::Exception& problem) {
    // Where a second document starts is known by then, and is the news.
    if (!second.start) {
      events.failure =
          yaml_problem(ProblemCode::syntax, location_of(problem.mark), message_of(problem, text));
    }
  }
  events.second_document = second.start;
  return events;
}

}  // namespace fuse
