#include <CLI/CLI.hpp>
#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "cmd/commands.h"
#include "cmd/contexts.h"
#include "cmd/misuse.h"
#include "cmd/output.h"
#include "cmd/target.h"
#include "net/url.h"

namespace fuse::cmd {

namespace {

struct ConnectOptions {
  std::string url{};
  std::string token{};
  std::string name{};
  bool master = false;
  bool no_verify = false;
};

// That there is an orchestrator, and that it takes the token.
Result<std::string> verified_version(const Context& context, const Target& target) {
  auto http = dial_target(target, context.variables);
  if (!http) return http.error();
  RemoteFleet fleet(*std::move(http));
  const auto service = fleet.service();
  if (!service) return service.error();
  if (service->service != "fuse-orchestrator") {
    return Error{ErrorCode::invalid_argument,
                 cat("what answers at ", target.url, " is no fuse orchestrator")};
  }
  if (!target.token.empty()) {
    if (const auto hosts = fleet.list_hosts(1, ""); !hosts) return hosts.error();
  }
  return service->version;
}

// The context's name and address, or what is wrong with the latter.
Result<NamedContext> wanted_context(const ConnectOptions& options) {
  const auto url = parse_url(options.url);
  if (!url) return url.error();
  NamedContext out{.name = options.name.empty() ? url->host : options.name,
                   .base_url = options.url,
                   .token = options.token,
                   .master = options.master};
  while (out.base_url.ends_with('/')) out.base_url.pop_back();
  return out;
}

int run_connect(Context& context, ConnectOptions options) {
  // A token on the command line is seen by others: `-` reads it, as FUSE_TOKEN does.
  if (options.token == "-") std::getline(context.in, options.token);
  if (options.token.empty()) options.token = context.variables("FUSE_TOKEN").value_or("");
  auto wanted = wanted_context(options);
  if (!wanted) return misuse(context, wanted.error());
  std::string version;
  if (!options.no_verify) {
    const auto found = verified_version(
        context, {.name = wanted->name, .url = wanted->base_url, .token = wanted->token});
    if (!found) return context.fail(found.error());
    version = *found;
  }
  const auto file = context.contexts_file();
  if (!file) return context.fail(file.error());
  auto contexts = read_contexts(context.host, *file);
  if (!contexts) return context.fail(contexts.error());
  const std::string name = wanted->name;
  if (NamedContext* const known = contexts->find(name)) {
    wanted->active_host = known->active_host;
    *known = *std::move(wanted);
  } else {
    contexts->all.push_back(*std::move(wanted));
  }
  contexts->current = name;
  if (auto done = write_contexts(context.host, *file, *contexts); !done) {
    return context.fail(done.error());
  }
  context.note(cat("connected to ", options.url, version.empty() ? "" : cat(", version ", version),
                   "; context ", name, " is the current one"));
  return success;
}

nlohmann::ordered_json context_json(const Contexts& contexts, const NamedContext& entry) {
  return {{"name", entry.name},
          {"base_url", entry.base_url},
          {"master", entry.master},
          {"active_host", entry.active_host},
          {"current", entry.name == contexts.current}};
}

// Reads the contexts, does something with them, and says what is wrong.
template <class F>
int with_contexts(const Context& context, F&& work) {
  const auto file = context.contexts_file();
  if (!file) return context.fail(file.error());
  auto contexts = read_contexts(context.host, *file);
  if (!contexts) return context.fail(contexts.error());
  return work(*contexts, *file);
}

void print_table(const Context& context, const Contexts& contexts) {
  Table table({"", "NAME", "ADDRESS", "TOKEN", "ACTIVE HOST"});
  for (const NamedContext& entry : contexts.all) {
    const std::string token = entry.token.empty() ? "-" : (entry.master ? "master" : "key");
    table.add({entry.name == contexts.current ? "*" : "", printable(entry.name),
               printable(entry.base_url), token,
               entry.active_host.empty() ? "-" : printable(entry.active_host)});
  }
  table.print(context.out, context.colour_out());
}

int run_list(const Context& context) {
  return with_contexts(context, [&](const Contexts& contexts, const fs::path& /*file*/) -> int {
    if (context.json()) {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const NamedContext& entry : contexts.all) list.push_back(context_json(contexts, entry));
      print_json(context.out, list);
      return success;
    }
    if (contexts.all.empty()) {
      context.note("there are no contexts: jobs run on this machine\n  fuse connect URL adds one");
    } else {
      print_table(context, contexts);
    }
    return success;
  });
}

int run_current(const Context& context) {
  return with_contexts(context, [&](const Contexts& contexts, const fs::path& /*file*/) -> int {
    if (contexts.current.empty()) {
      return context.fail({ErrorCode::not_found,
                           "no active context: jobs run on this machine",
                           {{"hint", "connect to an orchestrator: fuse connect URL"}}});
    }
    context.out << contexts.current << '\n';
    return success;
  });
}

Error no_such_context(const std::string& name) {
  return {ErrorCode::not_found,
          cat("there is no context \"", name, "\""),
          {{"hint", "those that there are: fuse context list"}}};
}

int run_use(const Context& context, const std::string& name) {
  return with_contexts(context, [&](Contexts& contexts, const fs::path& file) -> int {
    if (contexts.find(name) == nullptr) return context.fail(no_such_context(name));
    contexts.current = name;
    if (auto done = write_contexts(context.host, file, contexts); !done) {
      return context.fail(done.error());
    }
    context.note(cat("context ", name, " is the current one"));
    return success;
  });
}

int run_remove(const Context& context, const std::string& name) {
  return with_contexts(context, [&](Contexts& contexts, const fs::path& file) -> int {
    const auto gone =
        std::erase_if(contexts.all, [&](const NamedContext& entry) { return entry.name == name; });
    if (gone == 0) return context.fail(no_such_context(name));
    if (contexts.current == name) contexts.current.clear();
    if (auto done = write_contexts(context.host, file, contexts); !done) {
      return context.fail(done.error());
    }
    context.note(cat("context ", name, " is removed",
                     contexts.current.empty() ? "; jobs run on this machine now" : ""));
    return success;
  });
}

void add_named(CLI::App& parent, Invocation& invocation, const std::string& name,
               const std::string& help, int (*work)(const Context&, const std::string&)) {
  const auto chosen = std::make_shared<std::string>();
  auto* command = parent.add_subcommand(name, help);
  command->add_option("NAME", *chosen, "The context")->required()->type_name("");
  command->callback([&invocation, chosen, work] {
    invocation.action = [&invocation, chosen, work] { return work(invocation.context, *chosen); };
  });
}

}  // namespace

void add_connect(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<ConnectOptions>();
  auto* connect = app.add_subcommand("connect", "Use an orchestrator elsewhere from now on");
  connect->add_option("URL", options->url, "Its address, as https://fuse.example.com")
      ->required()
      ->type_name("");
  connect
      ->add_option("--token", options->token,
                   "Its token or an API key; - reads it; else FUSE_TOKEN")
      ->type_name("TOKEN");
  connect->add_option("--name", options->name, "What to call it; usually its host's name")
      ->type_name("NAME");
  connect->add_flag("--master", options->master, "The token is the master token");
  connect->add_flag("--no-verify", options->no_verify, "Do not ask it anything now");
  connect->callback([&invocation, options] {
    invocation.action = [&invocation, options] {
      return run_connect(invocation.context, *options);
    };
  });
}

void add_context(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand("context", "The orchestrators that fuse is connected to");
  command->alias("contexts");
  command->require_subcommand(1);
  command->add_subcommand("list", "List them")->callback([&invocation] {
    invocation.action = [&invocation] { return run_list(invocation.context); };
  });
  add_named(*command, invocation, "use", "Make one the current one", run_use);
  command->add_subcommand("current", "Name the current one")->callback([&invocation] {
    invocation.action = [&invocation] { return run_current(invocation.context); };
  });
  add_named(*command, invocation, "remove", "Forget one", run_remove);
}

}  // namespace fuse::cmd
