#include "fusefile/manifest.h"

#include <utility>

#include "fusefile/document.h"

namespace fuse {

namespace {

Document env_document(const Fusefile::Env& env) {
  Document document;
  for (const auto& [name, value] : env) {
    Document entry;
    if (value.secret.empty()) {
      entry.set("value", text_document(value.value));
    } else {
      entry.set("secret", text_document(value.secret));
    }
    document.set(name, std::move(entry));
  }
  return document;
}

Document healthcheck_document(const Fusefile::ServiceHealthcheck& healthcheck) {
  Document document;
  document.set_texts("test", healthcheck.test);
  document.set_text("interval", healthcheck.interval);
  document.set_text("timeout", healthcheck.timeout);
  document.set_number("retries", healthcheck.retries);
  return document;
}

Document service_document(const Fusefile::Service& service) {
  Document document;
  document.set("image", text_document(service.image));
  if (!service.ports.empty()) {
    Document ports = list_document();
    for (const std::int32_t port : service.ports) ports.items.push_back(number_document(port));
    document.set("ports", std::move(ports));
  }
  if (!service.env.empty()) document.set("env", env_document(service.env));
  document.set_texts("command", service.command);
  document.set_text("restart", service.restart);
  if (service.healthcheck) document.set("healthcheck", healthcheck_document(*service.healthcheck));
  document.set_texts("depends_on", service.depends_on);
  return document;
}

}  // namespace

std::string manifest_of(const Fusefile& file) {
  Document machine;
  machine.set("workspace", text_document(file.workspace));
  if (!file.env.empty()) machine.set("env", env_document(file.env));
  Document services;
  for (const auto& [name, service] : file.services) services.set(name, service_document(service));
  Document manifest;
  manifest.set("version", text_document("1"));
  manifest.set("machine", std::move(machine));
  manifest.set("services", std::move(services));
  return to_compact_json(manifest);
}

}  // namespace fuse
