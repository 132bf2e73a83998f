#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <sstream>

#include "base/text.h"
#include "fusefile/yaml_builder.h"

namespace fuse {

namespace {

Location location_of(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {mark.line + 1, mark.column + 1};
}

// Hands the events of one document to a builder.
class BuildingHandler final : public YAML::EventHandler {
 public:
  explicit BuildingHandler(YamlBuilder& builder) : builder_(builder) {}

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
    builder_.scalar(location_of(mark), tag, anchor, value);
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
  YamlBuilder& builder_;
};

// Notes only where a document starts.
class StartHandler final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { start = location_of(mark); }
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

  std::optional<Location> start{};
};

}  // namespace

YamlEvents read_yaml_events(const std::string& text, YamlBuilder& builder) {
  YamlEvents events;
  StartHandler second;
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    BuildingHandler first(builder);
    if (parser.HandleNextDocument(first)) parser.HandleNextDocument(second);
  } catch (const YAML::Exception& problem) {
    // Where a second document starts is known by then, and is the news.
    if (!second.start) {
      events.failure = yaml_problem(ProblemCode::syntax, location_of(problem.mark), problem.msg);
    }
  }
  events.second_document = second.start;
  return events;
}

}  // namespace fuse
