#include <algorithm>
#include <utility>

#include "base/text.h"
#include "hostmode/agent.h"
#include "hostmode/qmp_client.h"
#include "hostmode/user_net.h"

namespace fuse {

namespace {

constexpr std::int64_t longest_exec_ms = 600'000;

// A session that keeps the connection it runs on.
class HeldSession final : public AttachSession {
 public:
  HeldSession(std::shared_ptr<GuestClient> guest, std::unique_ptr<AttachSession> session)
      : guest_(std::move(guest)), session_(std::move(session)) {}

  Result<std::optional<AttachFrame>> read() override { return session_->read(); }
  Result<void> write(const AttachFrame& frame) override { return session_->write(frame); }
  void close() override { session_->close(); }

 private:
  std::shared_ptr<GuestClient> guest_;
  std::unique_ptr<AttachSession> session_;  // before the connection, in destruction too
};

Result<std::vector<std::string>> command_of(const ExecRequest& request) {
  if (!request.cmd.empty() && !request.shell.empty()) {
    return Error{ErrorCode::invalid_argument, "cmd and shell are mutually exclusive"};
  }
  if (!request.shell.empty()) return std::vector<std::string>{"sh", "-lc", request.shell};
  if (request.cmd.empty()) {
    return Error{ErrorCode::invalid_argument, "cmd must be non-empty array"};
  }
  return request.cmd;
}

ExecResult exec_result(GuestExecResult result, std::int64_t timeout_ms) {
  if (result.timed_out) {
    return {.exit_code = 124,
            .out = "",
            .err = cat("timeout: the command did not end within ", timeout_ms, " ms\n")};
  }
  if (result.truncated) result.err += "fuse: there was more output than is kept of a command\n";
  return {.exit_code = result.status.shell_code(),
          .out = std::move(result.out),
          .err = std::move(result.err)};
}

}  // namespace

Result<std::shared_ptr<VmSession>> Agent::session(const std::string& vm_id) {
  const auto vm = keeper_.find(vm_id);
  if (!vm) return vm.error();
  auto session = (*vm)->session();
  const VmInfo info = (*vm)->info();
  if (session != nullptr && info.alive) return session;
  return Error{ErrorCode::unavailable, cat("vm ", info.vm_id, " has ended: ", info.ended)};
}

Result<void> Agent::upload(const std::string& vm_id, const UploadFile& file) {
  const auto found = session(vm_id);
  if (!found) return found.error();
  Result<void> done;
  // Writing a file twice does no harm, so a connection that breaks is no failure.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto guest = (*found)->guest();
    if (!guest) return guest.error();
    done = (*guest)->upload(file);
    if (done || done.error().code != ErrorCode::unreachable) return done;
    (*found)->reconnect();
  }
  return done;
}

Result<ExecResult> Agent::exec(const std::string& vm_id, const ExecRequest& request) {
  auto argv = command_of(request);
  if (!argv) return argv.error();
  const auto found = session(vm_id);
  if (!found) return found.error();
  const auto guest = (*found)->guest();
  if (!guest) return guest.error();
  const std::int64_t timeout_ms =
      request.timeout_ms <= 0 ? longest_exec_ms : std::min(request.timeout_ms, longest_exec_ms);
  GuestExec command;
  command.argv = std::move(argv).value();
  command.timeout = std::chrono::milliseconds(timeout_ms);
  auto result = (*guest)->exec(command);
  if (!result) {
    if (result.error().code == ErrorCode::unreachable) (*found)->reconnect();
    return result.error();
  }
  return exec_result(std::move(result).value(), timeout_ms);
}

Result<std::unique_ptr<AttachSession>> Agent::attach(const std::string& vm_id,
                                                     const AttachRequest& request) {
  const auto found = session(vm_id);
  if (!found) return found.error();
  const auto guest = (*found)->guest();
  if (!guest) return guest.error();
  auto opened = (*guest)->open_attach(request);
  if (!opened) return opened.error();
  return std::unique_ptr<AttachSession>(
      std::make_unique<HeldSession>(*guest, std::move(opened).value()));
}

Result<std::vector<Endpoint>> Agent::start_agent(const std::string& vm_id,
                                                 const StartAgentRequest& request) {
  const auto found = session(vm_id);
  if (!found) return found.error();
  const auto guest = (*found)->guest();
  if (!guest) return guest.error();
  if (auto begun = (*guest)->begin(); !begun) {
    if (begun.error().code == ErrorCode::unreachable) (*found)->reconnect();
    return begun.error();
  }
  if (request.expose.empty()) return std::vector<Endpoint>();
  const auto vm = keeper_.find(vm_id);
  if (!vm) return vm.error();
  const VmRecord record = (*vm)->record();
  if (record.net == NetMode::none) {
    return Error{ErrorCode::invalid_argument,
                 cat("vm ", record.vm_id, " has no network: its ports cannot be exposed")};
  }
  auto qmp = QmpClient::connect(keeper_.paths().vm(record.uid), {});
  if (!qmp) return qmp.error();
  auto endpoints = expose_ports(*qmp, keeper_.config().ports, request.expose);
  if (!endpoints) return endpoints;
  std::vector<Endpoint> in_place = *endpoints;
  if (const auto own = own_endpoint(record.uid)) in_place.push_back(*own);
  if (auto noted = note_endpoints(record.uid, in_place); !noted) return noted.error();
  return endpoints;
}

}  // namespace fuse
