#include "tests/fakes/published_agent.h"

#include <nlohmann/json.hpp>

#include "base/command.h"
#include "base/text.h"
#include "net/attach_frames.h"
#include "net/attach_session.h"

namespace fuse {

namespace {

using nlohmann::json;

HttpResponse not_found() {
  return text_response(404, "not found");
}

// Prints one line and exits with 7.
void run_session(ByteStream& client) {
  (void)client.write(encode_attach_frame({AttachFrameType::stdout_bytes, "hello\n"}));
  (void)client.write(encode_attach_frame({AttachFrameType::exit, encode_exit(7)}));
}

}  // namespace

HttpHandler PublishedAgent::handler() {
  return [this](const HttpRequest& request) { return answer(request); };
}

std::vector<std::string> PublishedAgent::lines() const {
  const std::scoped_lock lock(mutex_);
  return lines_;
}

std::vector<std::string> PublishedAgent::creates() const {
  const std::scoped_lock lock(mutex_);
  return creates_;
}

HttpResponse PublishedAgent::answer(const HttpRequest& request) {
  {
    const std::scoped_lock lock(mutex_);
    lines_.push_back(cat(request.method, " ", request.target));
  }
  if (request.path == "/healthz") {
    return json_response(200, R"({"ok":true,"app_name":"qemu-agent"})");
  }
  if (request.path == "/v1/capacity") {
    return json_response(200, R"({"cpus":8,"ram_mb":16000,"storage_gb":100,"arch":"amd64",)"
                              R"("gpus":0,"gpu_kind":"","gpu_devices":[]})");
  }
  if (request.path == "/v1/vm") {
    return request.method == "POST" ? create(request) : list(request);
  }
  const auto parts = split(request.path, '/');
  if (parts.size() < 4 || parts[1] != "v1" || parts[2] != "vm") return not_found();
  return of_vm(request, lowercase(parts[3]), parts.size() > 4 ? parts[4] : "");
}

HttpResponse PublishedAgent::create(const HttpRequest& request) {
  const json body = json::parse(request.body);
  const std::string vm_id = lowercase(body.at("name").get<std::string>());
  const std::scoped_lock lock(mutex_);
  creates_.push_back(request.body);
  if (vms_.contains(vm_id)) return text_response(409, cat("vm ", vm_id, " already exists"));
  vms_[vm_id] = "10.0.0.7:19651";
  if (lose_next_create) {
    lose_next_create = false;
    return text_response(504, "the gateway has no patience");
  }
  return json_response(200, json{{"vm_id", vm_id}, {"url", vms_[vm_id]}}.dump());
}

HttpResponse PublishedAgent::list(const HttpRequest& request) const {
  const std::string prefix = request.query.get("prefix").value_or("");
  json vms = json::array();
  const std::scoped_lock lock(mutex_);
  for (const auto& [vm_id, url] : vms_) {
    if (vm_id.starts_with(prefix)) vms.push_back({{"vm_id", vm_id}, {"url", url}});
  }
  return json_response(200, json{{"vms", vms}}.dump());
}

HttpResponse PublishedAgent::of_vm(const HttpRequest& request, const std::string& vm_id,
                                   const std::string& verb) {
  {
    const std::scoped_lock lock(mutex_);
    if (!vms_.contains(vm_id)) return text_response(404, "vm not found");
    if (verb.empty() && request.method == "GET") {
      return json_response(200, json{{"vm_id", vm_id}, {"url", vms_[vm_id]}}.dump());
    }
    if (verb.empty() && request.method == "DELETE") {
      vms_.erase(vm_id);
      HttpResponse gone;
      gone.status = 204;
      return gone;
    }
  }
  if (verb == "upload") return upload(request);
  if (verb == "exec") return exec(request);
  if (verb == "attach") return attach(request);
  if (verb == (surfd ? "start-surfd" : "start-agent")) {
    return json_response(200, R"({"ok":true,"endpoints":[]})");
  }
  return not_found();
}

HttpResponse PublishedAgent::upload(const HttpRequest& request) const {
  const json body = json::parse(request.body);
  const fs::path path = body.at("path").get<std::string>();
  if (path.native().starts_with(folder_.native())) {
    PosixHost host;
    (void)host.make_dirs(path.parent_path(), 0700);
    const std::string bytes = base64_decode(body.at("content_b64").get<std::string>()).value();
    if (const auto done = host.replace_file(path, bytes, 0644); !done) {
      return text_response(500, done.error().message);
    }
  }
  return json_response(200, R"({"ok":true})");
}

HttpResponse PublishedAgent::exec(const HttpRequest& request) {
  const json body = json::parse(request.body);
  const auto done = run_command(
      host_, {.argv = body.at("cmd").get<std::vector<std::string>>(), .directory = folder_}, {},
      {.timeout = std::chrono::milliseconds(body.value("timeout_ms", 600'000))});
  if (!done) return text_response(500, done.error().message);
  return json_response(200, json{{"exit_code", done->status.shell_code()},
                                 {"stdout", base64_encode(done->out)},
                                 {"stderr", base64_encode(done->err)}}
                                .dump());
}

HttpResponse PublishedAgent::attach(const HttpRequest& request) {
  if (request.query.get("tty").value_or("") != "1") {
    return text_response(400, "attach requires tty=1; use /exec for non-interactive commands");
  }
  HttpResponse response;
  response.status = 101;
  response.upgrade = HttpResponse::Upgrade{std::string(attach_protocol), run_session};
  return response;
}

}  // namespace fuse
