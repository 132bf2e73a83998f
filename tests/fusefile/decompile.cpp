#include "tests/fusefile/decompile.h"

#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "fusefile/document.h"

namespace fuse {

namespace {

void set_map(Document& document, std::string_view key, Document map) {
  if (!map.members.empty()) document.set(key, std::move(map));
}

void set_list(Document& document, std::string_view key, std::vector<Document> items) {
  if (items.empty()) return;
  Document list = list_document();
  list.items = std::move(items);
  document.set(key, std::move(list));
}

void set_mib(Document& document, std::string_view key, std::int32_t mib) {
  if (mib != 0) document.set_text(key, cat(mib, "MB"));
}

void set_duration(Document& document, std::string_view key, std::chrono::nanoseconds time) {
  if (time.count() != 0) document.set_text(key, to_string(time));
}

Document resources_document(const Fusefile::Resources& resources) {
  Document document;
  document.set_number("cpus", resources.cpus);
  set_mib(document, "memory", resources.memory_mib);
  set_mib(document, "storage", resources.storage_mib);
  document.set_number("gpu", resources.gpu);
  document.set_text("gpu_kind", resources.gpu_kind);
  document.set_text("gpu_profile", resources.gpu_profile);
  document.set_text("region", resources.region);
  set_duration(document, "max_runtime", resources.max_runtime);
  set_duration(document, "idle_timeout", resources.idle_timeout);
  return document;
}

Document placement_document(const Fusefile::Placement& placement) {
  Document document;
  document.set_text("host", placement.host);
  Document labels;
  for (const auto& [name, value] : placement.labels) labels.set(name, text_document(value));
  set_map(document, "labels", std::move(labels));
  return document;
}

Document env_document(const Fusefile::Env& env) {
  Document document;
  for (const auto& [name, value] : env) {
    Document entry;
    entry.set_text("value", value.value);
    entry.set_text("secret", value.secret);
    document.set(name, std::move(entry));
  }
  return document;
}

Document flag_document(bool flag) {
  return text_document(flag ? "yes" : "no");
}

std::vector<Document> steps_documents(const std::vector<Fusefile::Step>& steps) {
  std::vector<Document> items;
  for (const Fusefile::Step& step : steps) {
    Document item;
    item.set_text("run", step.run);
    item.set_texts("inputs", step.inputs);
    if (step.cache) item.set("cache", flag_document(*step.cache));
    item.set_text("workdir", step.workdir);
    items.push_back(std::move(item));
  }
  return items;
}

Document service_document(const Fusefile::Service& service) {
  Document document;
  document.set_text("image", service.image);
  std::vector<Document> ports;
  for (const std::int32_t port : service.ports) ports.push_back(number_document(port));
  set_list(document, "ports", std::move(ports));
  set_map(document, "env", env_document(service.env));
  document.set_texts("command", service.command);
  document.set_text("restart", service.restart);
  if (service.healthcheck) {
    Document healthcheck;
    healthcheck.set_texts("test", service.healthcheck->test);
    healthcheck.set_text("interval", service.healthcheck->interval);
    healthcheck.set_text("timeout", service.healthcheck->timeout);
    healthcheck.set_number("retries", service.healthcheck->retries);
    document.set("healthcheck", std::move(healthcheck));
  }
  document.set_texts("depends_on", service.depends_on);
  return document;
}

std::vector<Document> files_documents(const std::vector<Fusefile::FileEntry>& files) {
  std::vector<Document> items;
  for (const Fusefile::FileEntry& entry : files) {
    Document item;
    item.set_text("path", entry.path);
    item.set_text("source", entry.source);
    if (entry.content) item.set("content", text_document(*entry.content));
    item.set_text("mode", entry.mode);
    items.push_back(std::move(item));
  }
  return items;
}

std::vector<Document> copy_documents(const std::vector<Fusefile::CopyEntry>& copy) {
  std::vector<Document> items;
  for (const Fusefile::CopyEntry& entry : copy) {
    Document item;
    item.set_text("from", entry.from);
    item.set_text("to", entry.to);
    items.push_back(std::move(item));
  }
  return items;
}

std::vector<Document> expose_documents(const std::vector<Fusefile::Expose>& exposed) {
  std::vector<Document> items;
  for (const Fusefile::Expose& entry : exposed) {
    Document item;
    item.set_number("port", entry.port);
    item.set_text("as", entry.as);
    items.push_back(std::move(item));
  }
  return items;
}

Document healthcheck_document(const Fusefile::Healthcheck& healthcheck) {
  Document document;
  if (healthcheck.http) {
    Document http;
    http.set_number("port", healthcheck.http->port);
    http.set_text("path", healthcheck.http->path);
    document.set("http", std::move(http));
  }
  document.set_texts("exec", healthcheck.exec);
  set_duration(document, "interval", healthcheck.interval);
  set_duration(document, "timeout", healthcheck.timeout);
  document.set_number("retries", healthcheck.retries);
  set_duration(document, "start_period", healthcheck.start_period);
  return document;
}

void set_run(Document& document, const std::optional<Fusefile::Run>& run) {
  if (!run) return;
  if (const auto* text = std::get_if<std::string>(&*run)) {
    document.set("run", text_document(*text));
  } else {
    document.set_texts("run", std::get<std::vector<std::string>>(*run));
  }
}

bool is_utf8(const Document& document) {
  if (valid_utf8(document.text) != document.text) return false;
  for (const Document& item : document.items) {
    if (!is_utf8(item)) return false;
  }
  for (const DocumentMember& member : document.members) {
    if (valid_utf8(member.key) != member.key || !is_utf8(member.value)) return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> decompile(const Fusefile& file) {
  Document document;
  document.set_number("version", 1);
  document.set_text("name", file.name);
  document.set_text("image", file.image);
  set_map(document, "resources", resources_document(file.resources));
  set_map(document, "placement", placement_document(file.placement));
  if (file.cache_enabled) {
    Document cache;
    cache.set("enabled", flag_document(*file.cache_enabled));
    document.set("cache", std::move(cache));
  }
  set_map(document, "env", env_document(file.env));
  set_list(document, "build", steps_documents(file.build));
  set_run(document, file.run);
  Document services;
  for (const auto& [name, service] : file.services) services.set(name, service_document(service));
  set_map(document, "services", std::move(services));
  set_list(document, "files", files_documents(file.files));
  set_list(document, "copy", copy_documents(file.copy));
  document.set_text("workspace", file.workspace);
  set_list(document, "expose", expose_documents(file.expose));
  if (file.healthcheck) document.set("healthcheck", healthcheck_document(*file.healthcheck));
  if (file.desktop) {
    Document desktop;
    desktop.set_number("width", file.desktop->width);
    desktop.set_number("height", file.desktop->height);
    document.set("desktop", std::move(desktop));
  }
  document.set_texts("secrets", file.secrets);
  set_duration(document, "startup_timeout", file.startup_timeout);
  if (!is_utf8(document)) return std::nullopt;
  return to_yaml(document);
}

}  // namespace fuse
