#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "cmd/commands.h"
#include "cmd/output.h"
#include "cmd/target.h"
#include "orchestrator/api/json.h"

namespace fuse::cmd {

namespace {

std::string when_text(const std::string& time, WallTime now) {
  return time.empty() ? "-" : cat(age_of(time, now), " ago");
}

int run_create(Context& context, const std::string& label) {
  const auto fleet = connect_fleet(context);
  if (!fleet) return context.fail(fleet.error());
  const auto key = (*fleet)->create_key(label);
  if (!key) return context.fail(key.error());
  if (context.json()) {
    print_json(context.out, to_json(*key));
  } else {
    context.out << key->secret << '\n';
    context.note(cat("key ", key->key.id, " is shown this once: keep it"));
  }
  return success;
}

int run_list(Context& context) {
  const auto fleet = connect_fleet(context);
  if (!fleet) return context.fail(fleet.error());
  const auto keys = (*fleet)->list_keys();
  if (!keys) return context.fail(keys.error());
  if (context.json()) {
    print_json(context.out, to_json(*keys)["api_keys"]);
    return success;
  }
  if (keys->empty()) {
    context.note("there are no API keys\n  make one: fuse apikeys create --label NAME");
    return success;
  }
  const WallTime now = context.clock.wall();
  Table table({"ID", "LABEL", "MADE", "USED", "REVOKED"});
  for (const ApiKey& key : *keys) {
    table.add({printable(key.id), key.label.empty() ? "-" : printable(key.label),
               when_text(key.created_at, now), when_text(key.last_used_at, now),
               when_text(key.revoked_at, now)});
  }
  table.print(context.out, context.colour_out());
  return success;
}

int run_revoke(Context& context, const std::string& id) {
  const auto fleet = connect_fleet(context);
  if (!fleet) return context.fail(fleet.error());
  if (auto done = (*fleet)->revoke_key(id); !done) return context.fail(done.error());
  context.note(cat(id, " is revoked"));
  return success;
}

}  // namespace

void add_apikeys(CLI::App& app, Invocation& invocation) {
  auto* keys = app.add_subcommand("apikeys", "Keys for callers without the master token");
  keys->require_subcommand(1);
  const auto label = std::make_shared<std::string>();
  auto* create = keys->add_subcommand("create", "Make one and print it, this once");
  create->add_option("--label", *label, "What it is for")->type_name("TEXT");
  create->callback([&invocation, label] {
    invocation.action = [&invocation, label] { return run_create(invocation.context, *label); };
  });
  keys->add_subcommand("list", "List them, without the keys")->callback([&invocation] {
    invocation.action = [&invocation] { return run_list(invocation.context); };
  });
  const auto id = std::make_shared<std::string>();
  auto* revoke = keys->add_subcommand("revoke", "Take one back");
  revoke->add_option("ID", *id, "The key's id, ak_...")->required()->type_name("");
  revoke->callback([&invocation, id] {
    invocation.action = [&invocation, id] { return run_revoke(invocation.context, *id); };
  });
}

}  // namespace fuse::cmd
