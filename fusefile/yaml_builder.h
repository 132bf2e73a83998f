#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusefile/yaml_tree.h"

namespace fuse {

// Builds a document out of the events of a YAML parser, within limits.  After
// the first failure every further event is ignored.
class YamlBuilder {
 public:
  explicit YamlBuilder(const YamlLimits& limits) : limits_(limits) {}

  // `anchor` is 0 for none, else a number that only this node has.
  void null(Location where, std::size_t anchor);
  void scalar(Location where, std::string_view tag, std::size_t anchor, std::string text);
  void begin(YamlNode::Kind kind, Location where, std::string_view tag, std::size_t anchor);
  void end();
  void alias(Location where, std::size_t anchor);

  [[nodiscard]] const std::optional<Diagnostic>& failure() const& { return failure_; }
  // Where the list or mapping begins that is not at its end yet, and where the
  // last node does.
  [[nodiscard]] std::optional<Location> innermost() const;
  [[nodiscard]] std::optional<Location> last() const;
  [[nodiscard]] YamlDocument take() && { return std::move(document_); }

 private:
  // What a node is with its aliases expanded.
  struct Weight {
    std::size_t nodes = 1;
    std::size_t text = 0;
    std::size_t height = 1;
  };
  struct Open {
    YamlNode* node = nullptr;
    Weight weight{};
    std::size_t anchor = 0;
  };
  struct Anchored {
    const YamlNode* node = nullptr;
    Weight weight{};
    bool complete = false;
  };

  YamlNode* make(Location where, std::string_view tag);
  void attach(const YamlNode* node, const Weight& weight);
  // Counts a node, or everything an alias stands for; false when it is too much.
  bool admit(Location where, const Weight& weight, bool through_alias);
  void fail(ProblemCode code, Location where, std::string_view message);

  YamlLimits limits_;
  YamlDocument document_{};
  std::vector<Open> open_{};
  std::map<std::size_t, Anchored> anchors_{};
  Weight total_{0, 0, 0};
  std::optional<Diagnostic> failure_{};
};

// Feeds the first document of `text`, which is valid UTF-8 without control
// characters, to `builder`.  Yields where a second one starts, if any, or why
// the text is no YAML.
struct YamlEvents {
  std::optional<Location> second_document{};
  std::optional<Diagnostic> failure{};
};
YamlEvents read_yaml_events(const std::string& text, YamlBuilder& builder);

// "parse fusefile: yaml: line 3: MESSAGE".
Diagnostic yaml_problem(ProblemCode code, Location where, std::string_view message);

}  // namespace fuse
