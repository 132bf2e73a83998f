#include "cmd/contexts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "fusefile/yaml_tree.h"

namespace fuse::cmd {

namespace {

const YamlNode* value_of(const YamlNode& map, std::string_view key) {
  for (const YamlEntry& entry : map.entries) {
    if (entry.key->text == key) return entry.value;
  }
  return nullptr;
}

std::string text_of(const YamlNode& map, std::string_view key) {
  const YamlNode* const value = value_of(map, key);
  return value != nullptr && value->kind == YamlNode::Kind::scalar ? value->text : std::string();
}

NamedContext read_context(const YamlNode& node) {
  return {.name = text_of(node, "name"),
          .base_url = text_of(node, "base_url"),
          .token = text_of(node, "token"),
          .master = text_of(node, "master") == "true",
          .active_host = text_of(node, "active_host")};
}

// A JSON string is a YAML one.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

}  // namespace

const NamedContext* Contexts::find(const std::string& name) const {
  const auto found = std::ranges::find(all, name, &NamedContext::name);
  return found == all.end() ? nullptr : &*found;
}

NamedContext* Contexts::find(const std::string& name) {
  const auto found = std::ranges::find(all, name, &NamedContext::name);
  return found == all.end() ? nullptr : &*found;
}

Result<fs::path> contexts_file(const Variables& variables) {
  const fs::path config = variables("XDG_CONFIG_HOME").value_or("");
  if (config.is_absolute()) return config / "fuse/config.yaml";
  const fs::path home = variables("HOME").value_or("");
  if (home.is_absolute()) return home / ".config/fuse/config.yaml";
  return Error{ErrorCode::invalid_argument,
               "there is no place for fuse's contexts: set HOME or XDG_CONFIG_HOME to an absolute "
               "path"};
}

Result<Contexts> parse_contexts(const std::string& text, const std::string& file) {
  Diagnostics diagnostics;
  const auto document = parse_yaml(text, {}, diagnostics);
  if (!document || !diagnostics.ok()) {
    const Diagnostic& problem = diagnostics.all().front();
    return Error{ErrorCode::invalid_argument,
                 cat(file, ":", problem.where.line, ": ", problem.message)};
  }
  Contexts out;
  if (document->root == nullptr || document->root->kind == YamlNode::Kind::null) return out;
  const YamlNode* const list = value_of(*document->root, "contexts");
  const bool well_formed = document->root->kind == YamlNode::Kind::map &&
                           (list == nullptr || list->kind != YamlNode::Kind::scalar);
  if (!well_formed) {
    return Error{ErrorCode::invalid_argument, cat(file, ": is no file of contexts")};
  }
  out.current = text_of(*document->root, "current_context");
  if (list == nullptr) return out;
  for (const YamlNode* item : list->items) {
    NamedContext context = read_context(*item);
    if (context.name.empty() || context.base_url.empty()) {
      return Error{ErrorCode::invalid_argument,
                   cat(file, ":", item->where.line, ": a context needs a name and a base_url")};
    }
    out.all.push_back(std::move(context));
  }
  return out;
}

std::string print_contexts(const Contexts& contexts) {
  std::string out = cat("current_context: ", quoted(contexts.current), "\ncontexts:");
  if (contexts.all.empty()) out += " []";
  out += '\n';
  for (const NamedContext& context : contexts.all) {
    out +=
        cat("  - name: ", quoted(context.name), "\n    base_url: ", quoted(context.base_url), '\n');
    if (!context.token.empty()) out += cat("    token: ", quoted(context.token), '\n');
    if (context.master) out += "    master: true\n";
    if (!context.active_host.empty()) {
      out += cat("    active_host: ", quoted(context.active_host), '\n');
    }
  }
  return out;
}

Result<Contexts> read_contexts(Host& host, const fs::path& file) {
  const auto text = host.read_file(file);
  if (text) return parse_contexts(*text, file.native());
  if (text.error().code == ErrorCode::not_found) return Contexts();
  return text.error();
}

Result<void> write_contexts(Host& host, const fs::path& file, const Contexts& contexts) {
  if (auto made = host.make_dirs(file.parent_path(), 0700); !made) return made;
  return host.replace_file(file, print_contexts(contexts), 0600);
}

}  // namespace fuse::cmd
