#pragma once

#include <string>
#include <string_view>

#include "base/text.h"
#include "fusefile/keys.h"

namespace fuse {

// A Fusefile in which `value` stands at the key, with what the section needs
// around it; the key is written as `name`.
inline std::string placed_as(std::string_view name, const KeyInfo& key, std::string_view value) {
  const std::string entry = cat(name, ": ", value);
  const std::string_view section = key.section;
  if (section.empty()) return cat(key.name == "version" ? "" : "version: 1\n", entry, "\n");
  if (section == "env.*") return cat("version: 1\nenv: {K: {", entry, "}}\n");
  if (section == "build[]" && key.name == "run") return cat("version: 1\nbuild: [{", entry, "}]\n");
  if (section == "build[]") return cat("version: 1\nbuild: [{run: x, ", entry, "}]\n");
  if (section == "services.*") {
    return cat("version: 1\nservices: {S: {", key.name == "image" ? "" : "image: x, ", entry,
               "}}\n");
  }
  if (section == "services.*.healthcheck") {
    return cat("version: 1\nservices: {S: {image: x, healthcheck: {", entry, "}}}\n");
  }
  if (section == "files[]") {
    const std::string_view path = key.name == "path" ? "" : "path: x, ";
    const bool is_body = key.name == "source" || key.name == "content";
    return cat("version: 1\nfiles: [{", path, is_body ? "" : "content: x, ", entry, "}]\n");
  }
  if (section == "copy[]") {
    return cat("version: 1\ncopy: [{", key.name == "from" ? "to: x, " : "from: x, ", entry, "}]\n");
  }
  if (section == "expose[]") {
    return cat("version: 1\nexpose: [{", key.name == "port" ? "" : "port: 80, ", entry, "}]\n");
  }
  if (section == "healthcheck.http") {
    return cat("version: 1\nhealthcheck: {http: {", key.name == "port" ? "" : "port: 80, ", entry,
               "}}\n");
  }
  if (section == "healthcheck") {
    const bool is_probe = key.name == "http" || key.name == "exec";
    return cat("version: 1\nhealthcheck: {", is_probe ? "" : "exec: [x], ", entry, "}\n");
  }
  if (section == "desktop") {
    return cat("version: 1\ndesktop: {", key.name == "width" ? "height: 400, " : "width: 400, ",
               entry, "}\n");
  }
  const bool is_profile = key.name == "gpu_profile";
  return cat("version: 1\n", section, ": {", is_profile ? "gpu: 1, " : "", entry, "}\n");
}

inline std::string placed(const KeyInfo& key, std::string_view value) {
  return placed_as(key.name, key, value);
}

}  // namespace fuse
