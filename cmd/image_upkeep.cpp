#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "base/units.h"
#include "cmd/commands.h"
#include "cmd/connect.h"
#include "cmd/local_agent.h"
#include "cmd/output.h"
#include "hostmode/image_store.h"

namespace fuse::cmd {

namespace {

using Json = nlohmann::ordered_json;

Result<ImageStore> open_store(const Context& context) {
  const auto config = read_config(context.variables);
  if (!config) return config.error();
  return ImageStore(image_store_config(*config));
}

std::vector<std::string> names_of(const std::vector<ListedImage>& images) {
  std::vector<std::string> names;
  names.reserve(images.size());
  for (const ListedImage& image : images) names.push_back(image.manifest.name);
  return names;
}

void print_verdict(const Context& context, const std::string& name, bool baked,
                   const std::vector<std::string>& problems) {
  if (problems.empty()) {
    context.out << printable(name)
                << (baked ? ": whole\n" : ": boots by firmware; its header is as it should be\n");
  }
  for (const std::string& problem : problems) {
    context.out << printable(name) << ": " << printable(problem) << '\n';
  }
}

int run_image_verify(Context& context, const std::string& name) {
  const auto store = open_store(context);
  if (!store) return context.fail(store.error());
  const std::vector<std::string> names =
      name.empty() ? names_of(store->list()) : std::vector<std::string>{name};
  if (names.empty()) context.note(cat("there are no images in ", store->dir().native()));
  Json verdicts = Json::array();
  bool all_whole = true;
  for (const std::string& each : names) {
    auto problems = store->verify(each);
    // One of many whose manifest is broken is no reason to leave out the others.
    if (!problems && !name.empty()) return context.fail(problems.error());
    const auto found =
        problems ? *std::move(problems) : std::vector<std::string>{problems.error().message};
    all_whole = all_whole && found.empty();
    verdicts.push_back({{"name", each}, {"problems", found}});
    const auto manifest = store->manifest(each);
    const bool baked = !manifest || manifest->has_value();
    if (!context.json()) print_verdict(context, each, baked, found);
  }
  if (context.json()) print_json(context.out, {{"images", std::move(verdicts)}});
  if (!all_whole) context.note("what is damaged is made anew by: fuse image bake NAME");
  return all_whole ? success : failed;
}

Json to_json(const std::vector<CollectedImages::File>& files) {
  Json out = Json::array();
  for (const auto& file : files)
    out.push_back({{"path", file.path.native()}, {"bytes", file.bytes}});
  return out;
}

void print_collected(const Context& context, const CollectedImages& collected, bool dry_run) {
  for (const auto& file : collected.files) {
    context.out << (dry_run ? "would remove  " : "removed  ") << printable(file.path.native())
                << "  " << human_bytes(file.bytes) << '\n';
  }
  for (const std::string& name : collected.unreadable) {
    context.note(cat("the manifest of ", printable(name),
                     " cannot be read, so every file that it may need stays"));
  }
  if (!collected.recent.empty()) {
    const bool one = collected.recent.size() == 1;
    context.note(cat(collected.recent.size(), " more ", one ? "file is" : "files are",
                     " not needed but ", one ? "was" : "were",
                     " used within the last hour: a VM may be starting"));
  }
  context.note(cat(dry_run ? "would free " : "freed ", human_bytes(collected.bytes())));
}

int run_image_prune(Context& context, bool dry_run) {
  const auto store = open_store(context);
  if (!store) return context.fail(store.error());
  const auto local = local_client(context);
  if (!local) return context.fail(local.error());
  const auto in_use = (*local)->images_in_use();
  if (!in_use) return context.fail(in_use.error());
  const auto collected =
      store->collect(*in_use, dry_run ? Collecting::look_only : Collecting::remove);
  if (!collected) return context.fail(collected.error());
  if (context.json()) {
    print_json(context.out, {{"dry_run", dry_run},
                             {"removed", to_json(collected->files)},
                             {"kept_for_now", to_json(collected->recent)},
                             {"bytes", collected->bytes()}});
  } else {
    print_collected(context, *collected, dry_run);
  }
  return success;
}

}  // namespace

void add_image_upkeep(CLI::App& image, Invocation& invocation) {
  const auto name = std::make_shared<std::string>();
  auto* verify = image.add_subcommand("verify", "Compare every file with what was baked");
  verify->add_option("NAME", *name, "This one; all of them unless said")->type_name("");
  verify->callback([&invocation, name] {
    invocation.action = [&invocation, name] { return run_image_verify(invocation.context, *name); };
  });

  const auto dry_run = std::make_shared<bool>(false);
  auto* prune = image.add_subcommand("prune", "Remove files that no image names and no VM uses");
  prune->add_flag("--dry-run", *dry_run, "Only say what would be removed");
  prune->callback([&invocation, dry_run] {
    invocation.action = [&invocation, dry_run] {
      return run_image_prune(invocation.context, *dry_run);
    };
  });
}

}  // namespace fuse::cmd
