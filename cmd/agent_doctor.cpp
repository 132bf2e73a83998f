#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "cmd/agent_options.h"
#include "cmd/commands.h"
#include "cmd/misuse.h"
#include "cmd/output.h"
#include "hostmode/doctor.h"

namespace fuse::cmd {

namespace {

using Json = nlohmann::ordered_json;

void print_findings(const Context& context, const std::vector<Finding>& findings) {
  if (context.json()) {
    Json list = Json::array();
    for (const Finding& finding : findings) {
      Json entry = {
          {"name", finding.name}, {"result", to_string(finding.kind)}, {"message", finding.words}};
      if (!finding.fix.empty()) entry["fix"] = finding.fix;
      list.push_back(std::move(entry));
    }
    print_json(context.out, {{"findings", std::move(list)}});
    return;
  }
  for (const Finding& finding : findings) {
    context.out << padded(to_string(finding.kind), 7) << "  " << finding.name << ": "
                << printable(finding.words) << '\n';
    if (!finding.fix.empty()) context.out << "         " << printable(finding.fix) << '\n';
  }
}

int run_doctor(Context& context, const DeviceOptions& options) {
  const auto paths = device_paths(context, options);
  if (!paths) return misuse(context, paths.error());
  const auto variable = [&](const std::string& name, const std::string& otherwise) {
    const std::string value = context.variables(name).value_or("");
    return value.empty() ? otherwise : value;
  };
  DoctorOptions how{.devices = *paths,
                    .qemu = variable("QEMU_BIN", "qemu-system-x86_64"),
                    .qemu_user = variable("FUSE_QEMU_USER", ""),
                    .ovmf_code = variable("OVMF_CODE", ""),
                    .images_dir = variable("IMAGES_DIR", (paths->dir / "images").native())};
  const auto port = parse_int(variable("QEMU_AGENT_PORT", "8091"));
  if (port && *port > 0 && *port < 65536) how.port = static_cast<std::uint16_t>(*port);
  const auto findings = examine_host(context.host, how);
  print_findings(context, findings);
  const auto problems = std::ranges::count(findings, Finding::Kind::problem, &Finding::kind);
  return problems > 0 ? failed : success;
}

}  // namespace

void add_agent_doctor(CLI::App& agent, Invocation& invocation) {
  auto* doctor = agent.add_subcommand("doctor", "Look for what keeps this host from serving VMs");
  const auto options = add_device_options(*doctor);
  doctor->callback([&invocation, options] {
    invocation.action = [&invocation, options] { return run_doctor(invocation.context, *options); };
  });
}

}  // namespace fuse::cmd
