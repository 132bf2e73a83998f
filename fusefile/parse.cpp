#include <utility>

#include "base/quote.h"
#include "base/text.h"
#include "fusefile/fusefile.h"
#include "fusefile/grammar.h"
#include "fusefile/guest_path.h"
#include "fusefile/sections.h"
#include "fusefile/yaml_tree.h"

namespace fuse {

namespace {

constexpr std::string_view default_workspace = "/workspace";

void check_version(MapReader& top, Report& report) {
  const auto version = top.whole("version");
  if (version == 1 || report.blamed("version")) return;
  report.error(ProblemCode::bad_version, "version", "must be 1",
               version ? "this fuse reads version 1 only" : "begin the file with version: 1");
}

std::string read_name(MapReader& top, Report& report) {
  std::string name = top.text_or_empty("name");
  if (!name.empty() && !is_dns_label(name)) {
    const std::string label = to_dns_label(name);
    report.error(ProblemCode::bad_value, "name",
                 cat("invalid name ", in_quotes(name),
                     ", must be lowercase letters, digits and dashes, alphanumeric at both ends, "
                     "63 chars max"),
                 cat("write ", label.empty() ? "letters and digits, as in train-llm" : label));
  }
  return name;
}

std::string read_workspace(MapReader& top, Report& report) {
  std::string workspace = top.text_or_empty("workspace");
  if (workspace.empty()) return std::string(default_workspace);
  if (has_newline_or_nul(workspace)) {
    report.error(ProblemCode::bad_path, "workspace", "must not contain newlines or NUL bytes",
                 "write one line, as in /workspace");
  } else if (!workspace.starts_with('/')) {
    report.error(ProblemCode::bad_path, "workspace",
                 cat("must be an absolute path, got ", in_quotes(workspace)),
                 "begin it with a slash, as in /workspace");
  } else if (has_parent_segment(workspace)) {
    report.error(ProblemCode::bad_path, "workspace",
                 cat("must not contain \"..\" segments, got ", in_quotes(workspace)),
                 cat("write ", in_quotes(clean_path(workspace))));
  }
  return workspace;
}

std::vector<Fusefile::Step> read_build(MapReader& top, Report& report) {
  auto build = read_steps(top, "build", report);
  auto setup = read_steps(top, "setup", report);
  if (top.has("build") && top.has("setup")) {
    report.error_near("setup", ProblemCode::exclusive,
                      "build and setup: setup is a deprecated alias for build, set one of them, "
                      "not both",
                      "move the steps of setup to build");
  }
  return top.has("build") ? build : setup;
}

std::vector<std::string> read_secrets(MapReader& top, Report& report) {
  std::vector<std::string> secrets = top.texts("secrets");
  for (std::size_t i = 0; i < secrets.size(); ++i) {
    const std::string path = path_item("secrets", i);
    if (secrets[i].empty() && !report.blamed(path)) {
      report.error(ProblemCode::required, path, "must not be empty",
                   "write the secret's name, or drop the entry");
    }
  }
  return secrets;
}

std::chrono::nanoseconds read_startup_timeout(MapReader& top, Report& report) {
  const auto timeout = top.duration("startup_timeout");
  if (!timeout) return {};
  if (timeout->count() <= 0) {
    report.error(ProblemCode::out_of_range, "startup_timeout",
                 cat("must be positive, got ", in_quotes(top.written("startup_timeout"))),
                 "write a duration as 10m, or leave it out");
  }
  return *timeout;
}

Fusefile read_fusefile(MapReader& top, Report& report) {
  Fusefile file;
  check_version(top, report);
  file.name = read_name(top, report);
  file.image = top.text_or_empty("image");
  file.resources = read_resources(top.map("resources"), report);
  file.placement = read_placement(top.map("placement"), report);
  file.cache_enabled = MapReader(top.map("cache"), "cache", "cache", report).flag("enabled");
  file.env = read_env(top, report);
  file.build = read_build(top, report);
  file.run = read_run(top, report);
  file.services = read_services(top, report);
  file.workspace = read_workspace(top, report);
  file.files = read_files(top, report);
  file.copy = read_copy(top, file.workspace, report);
  file.expose = read_expose(top, report);
  file.healthcheck = read_healthcheck(top.map("healthcheck"), report);
  file.desktop = read_desktop(top.map("desktop"), report);
  file.secrets = read_secrets(top, report);
  file.startup_timeout = read_startup_timeout(top, report);
  return file;
}

bool is_no_mapping(const YamlDocument& document) {
  return document.root != nullptr && document.root->kind != YamlNode::Kind::map &&
         document.root->kind != YamlNode::Kind::null;
}

}  // namespace

ParsedFusefile parse_fusefile(std::string_view text) {
  ParsedFusefile parsed;
  const auto document = parse_yaml(text, {}, parsed.diagnostics);
  if (!document) return parsed;

  Locations locations;
  Report report(locations);
  report.place("", {1, 1});
  MapReader top(document->root, "", "", report);
  // What is wrong with a text that is no mapping is said already.
  std::optional<Fusefile> file;
  if (!is_no_mapping(*document)) file = read_fusefile(top, report);
  report.finish(parsed.diagnostics);
  if (!file) return parsed;
  file->locations = std::move(locations);
  (parsed.diagnostics.ok() ? parsed.file : parsed.draft) = std::move(file);
  return parsed;
}

}  // namespace fuse
