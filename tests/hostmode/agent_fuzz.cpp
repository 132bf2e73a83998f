#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json_reader.h"
#include "hostmode/public_host.h"
#include "hostmode/qmp.h"
#include "hostmode/user_net.h"
#include "hostmode/vm_record.h"
#include "orchestrator/api/agent_json.h"

namespace {

// Bodies of the agent's routes.  What is read is written the same way, and read
// again.
void read_bodies(const nlohmann::json& body) {
  const auto again = [](const nlohmann::ordered_json& json) {
    return nlohmann::json::parse(
        json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  };
  const auto create = fuse::parse_create_vm_request(body);
  if (create && !fuse::parse_create_vm_request(again(fuse::to_json(*create)))) __builtin_trap();
  const auto upload = fuse::parse_upload(body);
  if (upload && !fuse::parse_upload(again(fuse::to_json(*upload)))) __builtin_trap();
  const auto job = fuse::parse_job_spec(body);
  if (job && !fuse::parse_job_spec(again(fuse::to_json(*job)))) __builtin_trap();
  const auto start = fuse::parse_start_agent_request(body);
  if (start && !fuse::parse_start_agent_request(again(fuse::to_json(*start)))) __builtin_trap();
  (void)fuse::parse_agent_exec_request(body);
  (void)fuse::parse_vm_list(body);
  (void)fuse::parse_agent_health(body);
}

}  // namespace

// What callers and QEMU say and what lies on disk: whatever it is, it is read or refused.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  fuse::QmpLines lines(4096);
  const std::size_t half = size / 2;
  for (const std::string_view piece : {text.substr(0, half), text.substr(half)}) {
    lines.feed(piece);
    while (true) {
      const auto line = lines.next();
      if (!line || !*line) break;
      (void)fuse::parse_qmp_message(**line);
    }
  }
  (void)fuse::parse_usernet(text);
  (void)fuse::parse_net(text);
  (void)fuse::is_public_host(text);
  if (const auto body = fuse::parse_json(text)) read_bodies(*body);
  const auto record = fuse::parse_vm_record(text);
  // What is read is written the same way, and read again.
  if (record && !fuse::parse_vm_record(fuse::to_text(*record))) __builtin_trap();
  return 0;
}
