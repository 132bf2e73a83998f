#include "cmd/local_purge.h"

#include "base/text.h"
#include "cmd/connect.h"
#include "cmd/local_paths.h"
#include "remote/remote_environments.h"

namespace fuse::cmd {

namespace {

// The number of those that there were.
Result<std::size_t> end_environments(EnvironmentApi& api) {
  std::size_t ended = 0;
  for (;;) {
    // What is removed leaves the list, so its first page is looked at again.
    const auto page = api.list({});
    if (!page) return page.error();
    if (page->environments.empty()) return ended;
    for (const Environment& environment : page->environments) {
      const auto done = api.destroy(environment.id);
      if (!done && done.error().code != ErrorCode::not_found) {
        return in_context(environment.id, done.error());
      }
      ++ended;
    }
  }
}

Result<void> remove_state(Host& host, const Config& config) {
  const auto names = host.list_dir(config.state_dir);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    const fs::path path = config.state_dir / name;
    // The lock is what whoever starts at this moment holds on to.
    const bool stays = path == config.images_dir || path == LocalPaths{config.state_dir}.lock();
    if (stays) continue;
    if (auto removed = host.remove_all(path); !removed) return removed;
  }
  return {};
}

}  // namespace

int purge_local(Context& context) {
  const auto config = read_config(context.variables);
  if (!config) return context.fail(config.error());
  const auto local = local_client(context);
  if (!local) return context.fail(local.error());
  if (const auto begun = (*local)->ensure(AcceptBuild::same); !begun) {
    return context.fail(begun.error());
  }
  auto http = (*local)->http();
  if (!http) return context.fail(http.error());
  RemoteEnvironments api(*std::move(http), context.clock);
  const auto ended = end_environments(api);
  if (!ended) return context.fail(ended.error());
  if (const auto stopped = (*local)->stop(); !stopped) return context.fail(stopped.error());
  if (const auto removed = remove_state(context.host, *config); !removed) {
    return context.fail(removed.error());
  }
  context.note(cat("removed ", *ended, *ended == 1 ? " environment" : " environments",
                   " and all state in ", config->state_dir.native(), "; guest images stay"));
  return success;
}

}  // namespace fuse::cmd
