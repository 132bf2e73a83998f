#include "fusefile/yaml_builder.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "fusefile/hints.h"

namespace fuse {

namespace {

std::string_view hint_for(ProblemCode code, std::string_view message) {
  if (code == ProblemCode::encoding) {
    return message.starts_with("control")
               ? R"(write it in double quotes as an escape, as in "\x1b")"
               : "save the file as plain UTF-8 text";
  }
  if (code == ProblemCode::limit) {
    return "keep data out of the Fusefile: files[].source and copy bring files along";
  }
  return hint_for_syntax(message);
}

}  // namespace

Diagnostic yaml_problem(ProblemCode code, Location where, std::string_view message) {
  const std::string place = where.known() ? cat("line ", where.line, ": ") : "";
  return {code, where, "", cat("parse fusefile: yaml: ", place, message),
          std::string(hint_for(code, message))};
}

std::optional<Location> YamlBuilder::innermost() const {
  if (open_.empty()) return std::nullopt;
  return open_.back().node->where;
}

std::optional<Location> YamlBuilder::last() const {
  if (document_.nodes.empty()) return std::nullopt;
  return document_.nodes.back()->where;
}

void YamlBuilder::fail(ProblemCode code, Location where, std::string_view message) {
  if (!failure_) failure_ = yaml_problem(code, where, message);
}

YamlNode* YamlBuilder::make(Location where, std::string_view tag) {
  document_.nodes.push_back(std::make_unique<YamlNode>());
  YamlNode* node = document_.nodes.back().get();
  node->where = where;
  if (tag != "?" && tag != "!") node->tag = tag;
  return node;
}

bool YamlBuilder::admit(Location where, const Weight& weight, bool through_alias) {
  if (failure_) return false;
  total_.nodes += weight.nodes;
  total_.text += weight.text;
  if (total_.nodes > limits_.nodes || total_.text > limits_.text) {
    const std::string message = through_alias
                                    ? "document contains excessive aliasing"
                                    : cat("document has more than ", limits_.nodes, " nodes");
    fail(ProblemCode::limit, where, message);
    return false;
  }
  if (open_.size() + weight.height > limits_.depth) {
    fail(ProblemCode::limit, where, cat("exceeded max depth of ", limits_.depth));
    return false;
  }
  return true;
}

void YamlBuilder::attach(const YamlNode* node, const Weight& weight) {
  if (open_.empty()) {
    if (document_.root == nullptr) document_.root = node;
    return;
  }
  Open& parent = open_.back();
  parent.weight.nodes += weight.nodes;
  parent.weight.text += weight.text;
  parent.weight.height = std::max(parent.weight.height, weight.height + 1);
  if (parent.node->kind == YamlNode::Kind::list) {
    parent.node->items.push_back(node);
  } else if (parent.node->entries.empty() || parent.node->entries.back().value != nullptr) {
    parent.node->entries.push_back({node, nullptr});
  } else {
    parent.node->entries.back().value = node;
  }
}

void YamlBuilder::null(Location where, std::size_t anchor) {
  const Weight weight{};
  if (!admit(where, weight, false)) return;
  const YamlNode* node = make(where, "");
  if (anchor != 0) anchors_[anchor] = {node, weight, true};
  attach(node, weight);
}

void YamlBuilder::scalar(Location where, std::string_view tag, std::size_t anchor,
                         std::string text) {
  const Weight weight{1, text.size(), 1};
  if (!admit(where, weight, false)) return;
  YamlNode* node = make(where, tag);
  node->kind = YamlNode::Kind::scalar;
  node->quoted = tag == "!";
  node->text = std::move(text);
  if (anchor != 0) anchors_[anchor] = {node, weight, true};
  attach(node, weight);
}

void YamlBuilder::begin(YamlNode::Kind kind, Location where, std::string_view tag,
                        std::size_t anchor) {
  const Weight weight{};
  if (!admit(where, weight, false)) return;
  YamlNode* node = make(where, tag);
  node->kind = kind;
  if (anchor != 0) anchors_[anchor] = {node, weight, false};
  open_.push_back({node, weight, anchor});
}

void YamlBuilder::end() {
  if (failure_ || open_.empty()) return;
  if (!open_.back().node->entries.empty() && open_.back().node->entries.back().value == nullptr) {
    null(open_.back().node->entries.back().key->where, 0);
    if (failure_) return;
  }
  const Open done = open_.back();
  open_.pop_back();
  if (done.anchor != 0) anchors_[done.anchor] = {done.node, done.weight, true};
  attach(done.node, done.weight);
}

void YamlBuilder::alias(Location where, std::size_t anchor) {
  if (failure_) return;
  const auto it = anchors_.find(anchor);
  if (it == anchors_.end() || !it->second.complete) {
    fail(ProblemCode::syntax, where, "an anchor's value contains itself");
    return;
  }
  const Anchored target = it->second;
  if (!admit(where, target.weight, true)) return;
  YamlNode* node = make(where, "");
  *node = *target.node;
  node->where = where;
  attach(node, target.weight);
}

}  // namespace fuse
