#include "cmd/target.h"

#include "base/text.h"
#include "base/version.h"
#include "cmd/contexts.h"

namespace fuse::cmd {

namespace {

Target target_of(const NamedContext& context) {
  return {.name = context.name,
          .url = context.base_url,
          .token = context.token,
          .master = context.master,
          .active_host = context.active_host};
}

}  // namespace

Result<std::optional<Target>> find_target(const Context& context) {
  using Maybe = std::optional<Target>;
  const std::string url = context.variables("FUSE_URL").value_or("");
  const std::string token = context.variables("FUSE_TOKEN").value_or("");
  if (!url.empty() && context.options.context.empty()) {
    return Maybe(Target{.url = url, .token = token});
  }
  const auto file = context.contexts_file();
  // Who has no home has no contexts.
  if (!file) return context.options.context.empty() ? Result<Maybe>(Maybe()) : file.error();
  const auto contexts = read_contexts(context.host, *file);
  if (!contexts) return contexts.error();
  const std::string& name =
      context.options.context.empty() ? contexts->current : context.options.context;
  if (name.empty()) return Maybe();
  const NamedContext* const found = contexts->find(name);
  if (found == nullptr) {
    return Error{ErrorCode::invalid_argument,
                 cat("there is no context \"", name, "\" in ", file->native()),
                 {{"hint", "those that there are: fuse context list"}}};
  }
  Target target = target_of(*found);
  if (!token.empty()) target.token = token;
  return Maybe(std::move(target));
}

Result<std::unique_ptr<HttpClient>> dial_target(const Target& target, const Variables& variables) {
  auto http = make_http_client({.base_url = target.url,
                                .token = target.token,
                                .user_agent = cat("fuse/", version()),
                                .ca_file = variables("FUSE_CA_FILE").value_or("")});
  if (http) return http;
  return in_context(target.name.empty() ? "FUSE_URL" : cat("context ", target.name), http.error());
}

Result<std::unique_ptr<RemoteFleet>> connect_fleet(Context& context) {
  auto http = context.dial(context);
  if (!http) return http.error();
  return std::make_unique<RemoteFleet>(*std::move(http));
}

}  // namespace fuse::cmd
