#include <utility>

#include "base/quote.h"
#include "base/text.h"
#include "fusefile/guest_path.h"
#include "fusefile/scalar.h"
#include "fusefile/sections.h"

namespace fuse {

namespace {

void check_workdir(const std::string& path, const std::string& workdir, Report& report) {
  if (has_newline_or_nul(workdir)) {
    report.error(ProblemCode::bad_path, path, "must not contain newlines or NUL bytes",
                 "write one line");
  } else if (has_parent_segment(workdir)) {
    report.error(ProblemCode::bad_path, path,
                 cat("must not contain \"..\" segments, got ", in_quotes(workdir)),
                 "write a folder below the workspace, or an absolute one");
  }
}

void check_inputs(const std::string& path, const Fusefile::Step& step, Report& report) {
  if (!step.inputs.empty() && step.cache == false) {
    report.error(ProblemCode::exclusive, path, "not allowed on a step with cache: false",
                 "drop inputs, or cache: false");
  }
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    const std::string& input = step.inputs[i];
    const std::string item = path_item(path, i);
    if (report.blamed(item)) continue;
    if (input.empty()) {
      report.error(ProblemCode::required, item, "must not be empty",
                   "name a file or folder, or drop the entry");
    } else if (input.starts_with('/')) {
      report.error(ProblemCode::bad_path, item,
                   cat("must be relative to the Fusefile, got ", in_quotes(input)),
                   "write the path from the Fusefile's folder, without a slash at the start");
    } else if (const std::string clean = clean_path(input);
               clean == ".." || clean.starts_with("../")) {
      report.error(
          ProblemCode::bad_path, item,
          cat("must not traverse outside the Fusefile's directory, got ", in_quotes(input)),
          "move what it depends on into the Fusefile's folder");
    }
  }
}

Fusefile::Step read_step_map(const YamlField& field, Report& report) {
  MapReader map(field.node, "build[]", field.path, report);
  Fusefile::Step step;
  step.run = map.text_or_empty("run");
  step.inputs = map.texts("inputs");
  step.cache = map.flag("cache");
  step.workdir = map.text_or_empty("workdir");
  check_inputs(map.path_of("inputs"), step, report);
  check_workdir(map.path_of("workdir"), step.workdir, report);
  return step;
}

Fusefile::Step read_step(const YamlField& field, Report& report) {
  Fusefile::Step step;
  if (field.node->kind == YamlNode::Kind::list) {
    report.error(ProblemCode::wrong_kind, field.path, "build step: must be a string or a mapping",
                 "write the step as shell text, or {run: TEXT}");
    return step;
  }
  if (field.node->kind == YamlNode::Kind::map) {
    step = read_step_map(field, report);
  } else {
    step.run = read_text(field, report).value_or("");
    if (report.blamed(field.path)) return step;
  }
  const std::string run = path_below(field.path, "run");
  if (trim(step.run).empty() && !report.blamed(run)) {
    report.error(ProblemCode::required, run, "is required", "write the command of the step");
  }
  return step;
}

Fusefile::Run read_argv(const YamlNode& list, Report& report) {
  std::vector<std::string> argv;
  if (list.items.empty()) {
    report.error(ProblemCode::required, "run", "an empty list is not a valid command",
                 "write a command, or leave run out");
  }
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const YamlNode& item = *list.items[i];
    const std::string_view tag = tag_of(item);
    if (tag != "!!str") {
      report.error_at(item.where, ProblemCode::wrong_kind, "run",
                      cat("argument ", i, " is not a string (tag ", tag, ")"),
                      item.kind == YamlNode::Kind::scalar ? cat("quote it: ", in_quotes(item.text))
                                                          : "write one text for each argument");
      continue;
    }
    argv.push_back(item.text);
  }
  return argv;
}

}  // namespace

std::vector<Fusefile::Step> read_steps(MapReader& top, std::string_view key, Report& report) {
  std::vector<Fusefile::Step> steps;
  for (const YamlField& field : top.items(key)) steps.push_back(read_step(field, report));
  return steps;
}

std::optional<Fusefile::Run> read_run(MapReader& top, Report& report) {
  const YamlNode* node = top.any("run");
  if (node == nullptr) return std::nullopt;
  if (node->kind == YamlNode::Kind::list) return read_argv(*node, report);
  if (node->kind == YamlNode::Kind::map) {
    report.error(ProblemCode::wrong_kind, "run", "must be a string or a list of strings",
                 "write run: COMMAND, or run: [PROGRAM, ARGUMENT]");
    return std::nullopt;
  }
  auto text = read_text({"run", "run", node}, report);
  if (!text || text->empty()) return std::nullopt;
  return Fusefile::Run(std::move(*text));
}

}  // namespace fuse
