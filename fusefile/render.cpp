#include "fusefile/render.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "fusefile/document.h"

namespace fuse {

namespace {

constexpr std::size_t label_width = 15;

Document text_map(const std::map<std::string, std::string>& values) {
  Document document;
  for (const auto& [key, value] : values) document.set(key, text_document(value));
  return document;
}

Document spec_document(const ResourceSpec& spec) {
  Document document;
  document.set_number("cpus", spec.cpus);
  document.set_number("ram_mb", spec.ram_mb);
  document.set_number("storage_gb", spec.storage_gb);
  document.set_number("gpus", spec.gpus);
  document.set_text("gpu_kind", spec.gpu_kind);
  document.set_text("gpu_profile", spec.gpu_profile);
  document.set_text("region", spec.region);
  document.set_text("arch", spec.arch);
  document.set_number("max_runtime_seconds", spec.max_runtime_seconds);
  document.set_number("idle_timeout_seconds", spec.idle_timeout_seconds);
  document.set_text("image", spec.image);
  document.set_text("host_id", spec.host_id);
  if (!spec.labels.empty()) document.set("labels", text_map(spec.labels));
  return document;
}

Document healthcheck_document(const HealthcheckSpec& healthcheck) {
  Document document;
  if (healthcheck.http) {
    Document http;
    http.set_number("port", healthcheck.http->port);
    http.set_text("path", healthcheck.http->path);
    document.set("http", std::move(http));
  }
  document.set_texts("exec", healthcheck.exec);
  document.set_number("interval_seconds", healthcheck.interval_seconds);
  document.set_number("timeout_seconds", healthcheck.timeout_seconds);
  document.set_number("retries", healthcheck.retries);
  document.set_number("start_period_seconds", healthcheck.start_period_seconds);
  return document;
}

Document expose_document(const std::vector<ExposeSpec>& exposed) {
  Document list = list_document();
  for (const ExposeSpec& entry : exposed) {
    Document item;
    item.set_number("port", entry.port);
    item.set_text("as", entry.as);
    list.items.push_back(std::move(item));
  }
  return list;
}

Document compiled_document(const CompiledFusefile& compiled) {
  const CreateEnvironmentRequest& request = compiled.request;
  Document document;
  document.set("task_id", text_document(request.task_id));
  document.set("spec", spec_document(request.spec));
  document.set("manifest_inline", text_document(request.manifest_inline));
  document.set("secrets", Document());
  if (!request.files.empty()) document.set("files", text_map(request.files));
  document.set_text("startup_script", request.startup_script);
  if (!request.expose.empty()) document.set("expose", expose_document(request.expose));
  if (request.healthcheck) {
    document.set("healthcheck", healthcheck_document(*request.healthcheck));
  }
  if (request.desktop) {
    Document desktop;
    desktop.set_number("width", request.desktop->width);
    desktop.set_number("height", request.desktop->height);
    document.set("desktop", std::move(desktop));
  }
  document.set_text("seed_snapshot_id", request.seed_snapshot_id);
  document.set_number("startup_script_timeout_seconds", request.startup_script_timeout_seconds);
  document.set_texts("required_secrets", compiled.required_secrets);
  return document;
}

std::string padded(std::string_view label) {
  std::string out(label);
  out.resize(std::max(label.size(), label_width), ' ');
  return out;
}

std::string number_row(std::string_view label, std::int64_t value) {
  return cat("  ", padded(label), " ", value, "\n");
}

// Left out when empty.
std::string text_row(std::string_view label, std::string_view value) {
  return value.empty() ? "" : cat("  ", padded(label), " ", value, "\n");
}

std::string spec_section(const ResourceSpec& spec) {
  std::string out = "\nspec\n";
  out += number_row("cpus", spec.cpus);
  out += number_row("ram mb", spec.ram_mb);
  out += number_row("storage gb", spec.storage_gb);
  out += number_row("max runtime s", spec.max_runtime_seconds);
  out += number_row("idle timeout s", spec.idle_timeout_seconds);
  out += text_row("image", spec.image);
  out += text_row("region", spec.region);
  if (spec.gpus != 0) out += number_row("gpus", spec.gpus);
  out += text_row("gpu kind", spec.gpu_kind);
  out += text_row("gpu profile", spec.gpu_profile);
  out += text_row("host", spec.host_id);
  for (const auto& [key, value] : spec.labels) out += text_row(cat("label ", key), value);
  return out;
}

std::string healthcheck_section(const HealthcheckSpec& healthcheck) {
  std::string out = "\nhealthcheck\n";
  if (healthcheck.http) {
    out += text_row("http", cat(healthcheck.http->port, " ", healthcheck.http->path));
  }
  out += text_row("exec", join(healthcheck.exec, " "));
  if (healthcheck.interval_seconds != 0)
    out += number_row("interval s", healthcheck.interval_seconds);
  if (healthcheck.timeout_seconds != 0) out += number_row("timeout s", healthcheck.timeout_seconds);
  if (healthcheck.retries != 0) out += number_row("retries", healthcheck.retries);
  if (healthcheck.start_period_seconds != 0) {
    out += number_row("start period s", healthcheck.start_period_seconds);
  }
  return out;
}

// A section with a heading and lines indented below it.
std::string section(std::string_view heading, std::string_view body) {
  std::string out = cat("\n", heading, "\n");
  if (body.ends_with('\n')) body.remove_suffix(1);
  for (const std::string& line : split(body, '\n')) out += cat("  ", line, "\n");
  return out;
}

std::string exposed_ports(const std::vector<ExposeSpec>& exposed, std::string_view between) {
  std::string out;
  for (const ExposeSpec& entry : exposed) {
    out += entry.as.empty() ? cat(entry.port, "\n") : cat(entry.port, between, entry.as, "\n");
  }
  return out;
}

std::string lines_of(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += cat(line, "\n");
  return out;
}

std::string render_text(const CompiledFusefile& compiled) {
  const CreateEnvironmentRequest& request = compiled.request;
  std::string out = cat("task id  ", request.task_id, "\n");
  if (!request.seed_snapshot_id.empty()) {
    out += cat("seed snapshot  ", request.seed_snapshot_id, " (setup phase skipped)\n");
  }
  if (request.startup_script_timeout_seconds != 0) {
    out += cat("startup timeout  ", request.startup_script_timeout_seconds, "s\n");
  }
  out += spec_section(request.spec);
  if (!request.startup_script.empty()) out += section("startup script", request.startup_script);
  out += section("manifest (decoded; sent base64 as manifest_inline)", compiled.manifest);
  if (!request.expose.empty()) out += section("expose", exposed_ports(request.expose, " as "));
  if (request.healthcheck) out += healthcheck_section(*request.healthcheck);
  if (request.desktop) {
    out += section("desktop", cat(request.desktop->width, "x", request.desktop->height));
  }
  if (!compiled.required_secrets.empty()) {
    out += section("required secrets (values supplied at `fuse up`)",
                   lines_of(compiled.required_secrets));
  }
  return out;
}

}  // namespace

std::optional<CompileFormat> compile_format_of(std::string_view text) {
  if (text == "text") return CompileFormat::text;
  if (text == "json") return CompileFormat::json;
  if (text == "yaml") return CompileFormat::yaml;
  return std::nullopt;
}

std::optional<CompilePart> compile_part_of(std::string_view text) {
  if (text == "spec") return CompilePart::spec;
  if (text == "manifest") return CompilePart::manifest;
  if (text == "startup-script") return CompilePart::startup_script;
  if (text == "expose") return CompilePart::expose;
  if (text == "secrets") return CompilePart::secrets;
  return std::nullopt;
}

std::string render(const CompiledFusefile& compiled, CompileFormat format) {
  switch (format) {
    case CompileFormat::text:
      return render_text(compiled);
    case CompileFormat::json:
      return to_indented_json(compiled_document(compiled)) + '\n';
    case CompileFormat::yaml:
      return to_yaml(compiled_document(compiled));
  }
  return "";
}

std::string render_part(const CompiledFusefile& compiled, CompilePart part) {
  switch (part) {
    case CompilePart::spec:
      return to_indented_json(spec_document(compiled.request.spec)) + '\n';
    case CompilePart::manifest:
      return compiled.manifest + '\n';
    case CompilePart::startup_script:
      return compiled.request.startup_script;
    case CompilePart::expose:
      return exposed_ports(compiled.request.expose, " ");
    case CompilePart::secrets:
      return lines_of(compiled.required_secrets);
  }
  return "";
}

}  // namespace fuse
