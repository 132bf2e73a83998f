#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/posix_host.h"
#include "base/text.h"
#include "guest/process_stream.h"

namespace fuse {

namespace {

constexpr std::uint16_t default_rows = 24;
constexpr std::uint16_t default_cols = 80;
constexpr std::int32_t most_rows_or_cols = 65535;

fs::path under(const fs::path& root, const fs::path& path) {
  return root.empty() ? path : root / path.relative_path();
}

// The shell that /etc/passwd gives root, or any there is.
std::string root_shell(const fs::path& root) {
  const auto passwd = PosixHost(root).read_file("/etc/passwd");
  for (const std::string& line : split(passwd ? *passwd : "", '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 7 || fields[2] != "0" || fields[6].empty()) continue;
    if (::access(under(root, fields[6]).c_str(), X_OK) == 0) return fields[6];
  }
  const std::string bash = "/bin/bash";
  return ::access(under(root, bash).c_str(), X_OK) == 0 ? bash : "/bin/sh";
}

std::uint16_t size_or(std::int32_t wanted, std::uint16_t otherwise) {
  if (wanted <= 0 || wanted > most_rows_or_cols) return otherwise;
  return static_cast<std::uint16_t>(wanted);
}

}  // namespace

ProcessPlan plan_exec(const ExecOperation& operation, const fs::path& root) {
  const GuestExec& command = operation.command;
  const fs::path workdir = command.workdir.empty() ? "/" : command.workdir;
  return {.child = {.argv = command.argv,
                    .environment = guest_environment(command.env),
                    .directory = under(root, workdir)},
          .has_input = operation.has_input,
          .timeout = command.timeout};
}

ProcessPlan plan_attach(const AttachOperation& operation, const fs::path& root) {
  const AttachRequest& request = operation.request;
  auto env = operation.env;
  if (request.tty) env.try_emplace("TERM", "xterm");
  const fs::path home = under(root, "/root");
  std::error_code failure;
  ProcessPlan plan{
      .child = {.argv = request.cmd,
                .directory = fs::is_directory(home, failure) ? home : under(root, "/")}};
  if (request.cmd.empty()) {
    const std::string shell = root_shell(root);
    env.try_emplace("SHELL", shell);
    plan.child.argv = {shell};
    plan.child.argv0 = cat("-", fs::path(shell).filename().native());
  }
  plan.child.environment = guest_environment(env);
  if (request.tty) {
    plan.terminal = TerminalSize{.rows = size_or(request.rows, default_rows),
                                 .cols = size_or(request.cols, default_cols)};
  }
  return plan;
}

}  // namespace fuse
