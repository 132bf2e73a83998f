#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "cmd/agreement.h"
#include "cmd/commands.h"
#include "cmd/contexts.h"
#include "cmd/host_text.h"
#include "cmd/misuse.h"
#include "cmd/output.h"
#include "cmd/target.h"
#include "orchestrator/api/json.h"

namespace fuse::cmd {

namespace {

struct RegisterOptions {
  RegisterHostRequest request{};
  std::string backend = "firecracker";
  std::vector<std::string> profiles{};  // P=N
  std::vector<std::string> labels{};    // K=V
  bool no_verify = false;
};

Error not_a_pair(const std::string& flag, const std::string& text, const std::string& form) {
  return {ErrorCode::invalid_argument, cat(flag, " must be ", form, ", got \"", text, "\"")};
}

// The flags that hold more than one thing, taken apart.
Result<RegisterHostRequest> request_of(const RegisterOptions& options) {
  RegisterHostRequest request = options.request;
  const auto backend = backend_of(options.backend);
  if (!backend) {
    return Error{ErrorCode::invalid_argument,
                 cat("--backend must be firecracker or qemu, got \"", options.backend, "\"")};
  }
  request.backend = *backend;
  for (const std::string& profile : options.profiles) {
    const std::size_t equals = profile.find('=');
    const auto count = equals == std::string::npos ? std::optional<std::int64_t>()
                                                   : parse_int(profile.substr(equals + 1));
    if (!count || *count <= 0 || *count > 1000) {
      return not_a_pair("--mig-profile", profile, "PROFILE=COUNT, such as 1g.10gb=7");
    }
    request.capacity.mig_profiles[profile.substr(0, equals)] = static_cast<std::int32_t>(*count);
  }
  for (const std::string& label : options.labels) {
    const std::size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0) {
      return not_a_pair("--label", label, "KEY=VALUE");
    }
    request.labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
  if (request.backend == Backend::firecracker && request.token.empty() && !options.no_verify) {
    return Error{ErrorCode::invalid_argument,
                 "a firecracker host needs --token, the agent's FC_AGENT_TOKEN",
                 {{"hint", "to enter it without: --no-verify"}}};
  }
  return request;
}

int run_register(Context& context, const RegisterOptions& options) {
  const auto request = request_of(options);
  if (!request) return misuse(context, request.error());
  const auto fleet = connect_fleet(context);
  if (!fleet) return context.fail(fleet.error());
  const auto host = (*fleet)->register_host(*request);
  if (!host) return context.fail(host.error());
  if (context.json()) {
    print_json(context.out, to_json(*host));
    return success;
  }
  context.out << host->id << ": registered, " << host->capacity.cpus << " CPUs, "
              << host->capacity.ram_mb << " MiB, gpus: " << gpu_text(*host) << '\n';
  for (const std::string& warning : host->warnings) {
    context.note(cat("warning: ", printable(warning)));
  }
  context.note(cat("  look at it  fuse host get ", host->id));
  return success;
}

void add_register(CLI::App& host, Invocation& invocation) {
  const auto options = std::make_shared<RegisterOptions>();
  RegisterHostRequest& request = options->request;
  HostCapacity& capacity = request.capacity;
  constexpr std::int32_t usual_vms = 16;
  capacity.vm_count = usual_vms;
  auto* command = host.add_subcommand("register", "Enter a host, or bring a known one up to date");
  command->add_option("ID", request.id, "What to call it")->required()->type_name("");
  command->add_option("--url", request.url, "Its agent's address, as http://gpu-host:8091")
      ->required()
      ->type_name("URL");
  command->add_option("--token", request.token, "The agent's token (QEMU_AGENT_TOKEN there)")
      ->type_name("TOKEN");
  command->add_option("--backend", options->backend, "firecracker (usual) or qemu")
      ->type_name("NAME");
  command->add_option("--region", request.region, "Where it is")->type_name("NAME");
  command->add_option("--arch", capacity.arch, "amd64 or arm64")->type_name("NAME");
  command->add_option("--cpus", capacity.cpus, "CPUs to give out; usually all it has")
      ->type_name("N");
  command->add_option("--ram-mb", capacity.ram_mb, "Memory to give out, MiB")->type_name("N");
  command->add_option("--storage-gb", capacity.storage_gb, "Disk to give out, GiB")->type_name("N");
  command->add_option("--max-vms", capacity.vm_count, cat("At most so many VMs (", usual_vms, ")"))
      ->type_name("N");
  command
      ->add_option("--gpus", capacity.gpus, "GPUs to give out; fewer than it has keeps some back")
      ->type_name("N");
  command->add_option("--gpu-kind", capacity.gpu_kind, "Their kind")->type_name("KIND");
  command->add_option("--mig-profile", options->profiles, "MIG instances to count on")
      ->type_name("P=N");
  command->add_option("--label", options->labels, "A label that jobs can ask for")
      ->type_name("K=V");
  command->add_flag("--no-verify", options->no_verify, "Without the agent's token");
  command->callback([&invocation, options] {
    invocation.action = [&invocation, options] {
      return run_register(invocation.context, *options);
    };
  });
}

Result<HostPage> all_hosts(HostApi& fleet) {
  HostPage all;
  std::string cursor;
  do {
    auto page = fleet.list_hosts(0, cursor);
    if (!page) return page;
    std::ranges::move(page->hosts, std::back_inserter(all.hosts));
    cursor = page->next_cursor;
  } while (!cursor.empty());
  return all;
}

int run_list(Context& context) {
  const auto fleet = connect_fleet(context);
  if (!fleet) return context.fail(fleet.error());
  const auto page = all_hosts(**fleet);
  if (!page) return context.fail(page.error());
  if (context.json()) {
    print_json(context.out, to_json(*page));
  } else if (page->hosts.empty()) {
    context.note("there are no hosts\n  enter one: fuse host register ID --url URL --token TOKEN");
  } else {
    print_hosts(context.out, page->hosts, context.clock.wall(), context.colour_out());
  }
  return success;
}

int run_get(Context& context, const std::string& id) {
  const auto fleet = connect_fleet(context);
  if (!fleet) return context.fail(fleet.error());
  const auto host = (*fleet)->get_host(id);
  if (!host) return context.fail(host.error());
  if (context.json()) {
    print_json(context.out, to_json(*host));
    return success;
  }
  const auto api = context.connect(context);
  if (!api) return context.fail(api.error());
  const auto page = (*api)->list({.host_id = id, .limit = 200});
  if (!page) return context.fail(page.error());
  print_host(context.out, *host, page->environments, context.clock.wall());
  return success;
}

int run_metrics(Context& context, const std::string& id) {
  const auto fleet = connect_fleet(context);
  if (!fleet) return context.fail(fleet.error());
  const auto host = (*fleet)->get_host(id);
  if (!host) return context.fail(host.error());
  if (context.json()) {
    print_json(context.out, {{"host_id", host->id},
                             {"state", to_string(host->state)},
                             {"capacity", to_json(host->capacity)},
                             {"allocated", to_json(host->allocated)}});
  } else {
    print_hosts(context.out, {*host}, context.clock.wall(), context.colour_out());
  }
  return success;
}

struct ChangeText {
  HostAction action;
  std::string_view done;
};

int run_change(Context& context, const std::string& id, const ChangeText& change) {
  const auto fleet = connect_fleet(context);
  if (!fleet) return context.fail(fleet.error());
  if (auto done = (*fleet)->change_host(id, change.action); !done) {
    return context.fail(done.error());
  }
  context.note(cat(id, ": ", change.done));
  return success;
}

// Waits for nothing: says what is still on it.
int run_drain(Context& context, const std::string& id) {
  const auto fleet = connect_fleet(context);
  if (!fleet) return context.fail(fleet.error());
  if (auto done = (*fleet)->change_host(id, HostAction::drain); !done) {
    return context.fail(done.error());
  }
  const auto host = (*fleet)->get_host(id);
  if (!host) return context.fail(host.error());
  const std::int32_t left = host->allocated.vm_count;
  context.note(left == 0 ? cat(id, ": drained; it is empty")
                         : cat(id, ": drains; ", left, " environments are still on it\n",
                               "  they are  fuse environment list --host-id ", id));
  return success;
}

struct RemoveOptions {
  std::string id{};
  bool yes = false;
};

int run_remove(Context& context, const RemoveOptions& options) {
  if (!options.yes) {
    if (const auto code = not_agreed(context, cat("host ", options.id))) return *code;
  }
  const auto fleet = connect_fleet(context);
  if (!fleet) return context.fail(fleet.error());
  if (auto done = (*fleet)->remove_host(options.id); !done) return context.fail(done.error());
  context.note(cat(options.id, " is removed"));
  return success;
}

// A command that takes a host and nothing else.
void add_simple(CLI::App& host, Invocation& invocation, const std::string& name,
                const std::string& help, std::function<int(Context&, const std::string&)> work) {
  const auto id = std::make_shared<std::string>();
  auto* command = host.add_subcommand(name, help);
  command->add_option("ID", *id, "The host")->required()->type_name("");
  command->callback([&invocation, id, work = std::move(work)] {
    invocation.action = [&invocation, id, work] { return work(invocation.context, *id); };
  });
}

void add_remove(CLI::App& host, Invocation& invocation) {
  const auto options = std::make_shared<RemoveOptions>();
  auto* command = host.add_subcommand("remove", "Forget a host that has no environments");
  for (const char* alias : {"rm", "deregister"}) command->alias(alias);
  command->add_option("ID", options->id, "The host")->required()->type_name("");
  command->add_flag("-y,--yes", options->yes, "Do not ask");
  command->callback([&invocation, options] {
    invocation.action = [&invocation, options] { return run_remove(invocation.context, *options); };
  });
}

// `fuse host ID` limits lists of environments to it; `fuse host` says to which.
int run_select(Context& context, const std::string& id) {
  const auto target = find_target(context);
  if (!target) return context.fail(target.error());
  if (!*target || (*target)->name.empty()) {
    return context.fail({ErrorCode::invalid_argument,
                         "no active context, so there is no active host",
                         {{"hint", "connect to an orchestrator: fuse connect URL"}}});
  }
  if (id.empty()) {
    context.out << ((*target)->active_host.empty() ? "no active host" : (*target)->active_host)
                << '\n';
    return success;
  }
  const auto fleet = connect_fleet(context);
  if (!fleet) return context.fail(fleet.error());
  if (const auto host = (*fleet)->get_host(id); !host) return context.fail(host.error());
  const auto file = context.contexts_file();
  if (!file) return context.fail(file.error());
  auto contexts = read_contexts(context.host, *file);
  if (!contexts) return context.fail(contexts.error());
  if (NamedContext* const entry = contexts->find((*target)->name)) entry->active_host = id;
  if (auto done = write_contexts(context.host, *file, *contexts); !done) {
    return context.fail(done.error());
  }
  context.note(cat("active host ", id));
  return success;
}

}  // namespace

void add_host(CLI::App& app, Invocation& invocation) {
  auto* host = app.add_subcommand("host", "Hosts of the fleet");
  host->alias("hosts");
  host->require_subcommand(0, 1);
  const auto selected = std::make_shared<std::string>();
  host->add_option("ID", *selected, "The host that lists are limited to")->type_name("");
  host->callback([&invocation, host, selected] {
    if (!host->get_subcommands().empty()) return;
    invocation.action = [&invocation, selected] {
      return run_select(invocation.context, *selected);
    };
  });
  add_register(*host, invocation);
  host->add_subcommand("list", "List hosts")->callback([&invocation] {
    invocation.action = [&invocation] { return run_list(invocation.context); };
  });
  add_simple(*host, invocation, "get", "Show one, its devices and who holds them", run_get);
  add_simple(*host, invocation, "metrics", "Show what is used of one", run_metrics);
  add_simple(*host, invocation, "cordon", "Send it nothing new",
             [](Context& context, const std::string& id) {
               return run_change(context, id, {HostAction::cordon, "cordoned; what runs goes on"});
             });
  add_simple(*host, invocation, "uncordon", "Send it work again",
             [](Context& context, const std::string& id) {
               return run_change(context, id, {HostAction::uncordon, "takes work again"});
             });
  add_simple(*host, invocation, "drain", "Send it nothing new and say what is left", run_drain);
  add_remove(*host, invocation);
}

}  // namespace fuse::cmd
