#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "base/units.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/connect.h"
#include "cmd/interruption.h"
#include "cmd/launch.h"
#include "cmd/local_agent.h"
#include "cmd/misuse.h"
#include "cmd/output.h"
#include "cmd/progress.h"
#include "hostmode/image_bake.h"

namespace fuse::cmd {

namespace {

nlohmann::ordered_json to_json(const ListedImage& image) {
  const ImageManifest& manifest = image.manifest;
  nlohmann::ordered_json json;
  const auto text = [&json](const char* name, const std::string& value) {
    if (!value.empty()) json[name] = value;
  };
  text("name", manifest.name);
  text("boot", manifest.boot);
  text("os", manifest.os);
  text("arch", manifest.arch);
  text("kernel_version", manifest.kernel_version);
  text("driver_branch", manifest.driver_branch);
  json["foreign"] = image.foreign;
  json["size"] = image.size;
  if (manifest.disk_bytes > 0) json["disk_bytes"] = manifest.disk_bytes;
  if (!image.foreign) text("sha256", manifest.sha256());
  text("created", manifest.created);
  text("built_by", manifest.built_by);
  text("problem", image.problem);
  return json;
}

int run_image_list(Context& context) {
  const auto config = read_config(context.variables);
  if (!config) return context.fail(config.error());
  const std::vector<ListedImage> images = ImageStore(image_store_config(*config)).list();
  if (context.json()) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const ListedImage& image : images) list.push_back(to_json(image));
    print_json(context.out, {{"images", std::move(list)}});
    return success;
  }
  if (images.empty()) {
    context.note(cat("there are no images in ", config->images_dir.native(),
                     "\n  make the usual one: fuse image bake base"));
    return success;
  }
  Table table({"NAME", "OS", "KERNEL", "SIZE", "DISK", "AGE", "PROBLEM"});
  for (const ListedImage& image : images) {
    const ImageManifest& manifest = image.manifest;
    table.add({printable(manifest.name), or_dash(manifest.os),
               image.foreign ? manifest.boot : or_dash(manifest.kernel_version),
               human_bytes(image.size),
               manifest.disk_bytes > 0 ? human_bytes(manifest.disk_bytes) : "-",
               age_of(manifest.created, context.clock.wall()), or_dash(image.problem)});
  }
  table.print(context.out, context.colour_out());
  return success;
}

struct ImageBakeOptions {
  std::string name{};
  std::string kind{};
  std::string disk{};
  std::vector<std::string> packages{};
  std::vector<std::string> features{};
};

Result<BakeOptions> bake_options(const ImageBakeOptions& options) {
  BakeOptions bake{.packages = options.packages, .with_containers = !options.features.empty()};
  const std::string kind =
      !options.kind.empty() ? options.kind : (options.name == "micro" ? "micro" : "base");
  if (kind == "micro") {
    bake.kind = ImageKind::micro;
  } else if (kind != "base") {
    return Error{ErrorCode::invalid_argument,
                 cat("--kind must be base or micro, got \"", kind, "\"")};
  }
  if (!options.disk.empty()) {
    const auto size = parse_size_mib(options.disk);
    if (!size) return in_context("--disk", size.error());
    bake.disk_bytes = static_cast<std::uint64_t>(*size) << 20U;
  }
  const bool wants_disk =
      !options.packages.empty() || !options.disk.empty() || bake.with_containers;
  if (bake.kind == ImageKind::micro && wants_disk) {
    return Error{ErrorCode::invalid_argument,
                 "a micro image has no disk, so neither --disk nor --package nor --with"};
  }
  return bake;
}

// A bake's steps in the form of a create's.
BakeListener show_steps(Progress& progress) {
  return [&progress](const BakeProgress& at) {
    EnvironmentEvent event{.event = "step", .key = "bake", .message = at.step};
    if (at.finished) {
      event.duration_ms = std::chrono::duration_cast<std::chrono::milliseconds>(at.elapsed).count();
    }
    progress.step(event);
  };
}

int run_image_bake(Context& context, const ImageBakeOptions& options) {
  auto bake = bake_options(options);
  if (!bake) return misuse(context, bake.error());
  const auto config = read_config(context.variables);
  if (!config) return context.fail(config.error());
  const auto local = local_client(context);
  if (!local) return context.fail(local.error());
  Interruption interruption(context);
  auto in_use = (*local)->images_in_use();
  if (!in_use) return context.fail(in_use.error());
  bake->in_use = std::move(*in_use);
  bake->stop = interruption.token();

  const ImageStore store(image_store_config(*config));
  if (const auto made = context.host.make_dirs(store.dir(), 0700); !made) {
    return context.fail(made.error());
  }
  context.note(cat("baking ", options.name, " into ", store.dir().native()));
  const ProgressOptions shown = progress_options(context);
  Progress progress(context.err, context.clock, shown);
  const ProgressTicker ticker(progress, shown.style);
  bake->listener = show_steps(progress);
  const auto manifest = bake_image(store, context.host, context.clock, options.name, *bake);
  progress.stop_live();
  if (interruption.happened()) {
    context.note("interrupted: nothing was changed");
    return interruption.exit_code();
  }
  if (!manifest) return context.fail(manifest.error());
  if (context.json()) {
    print_json(context.out, to_json({.manifest = *manifest, .size = manifest->size()}));
  } else {
    context.out << options.name << ": " << human_bytes(manifest->size()) << ", "
                << or_dash(manifest->os) << ", kernel " << or_dash(manifest->kernel_version)
                << '\n';
  }
  return success;
}

}  // namespace

void add_image(CLI::App& app, Invocation& invocation) {
  auto* image = app.add_subcommand("image", "Guest images on this machine");
  image->alias("images");
  image->require_subcommand(1);
  image->add_subcommand("list", "List them")->callback([&invocation] {
    invocation.action = [&invocation] { return run_image_list(invocation.context); };
  });

  const auto options = std::make_shared<ImageBakeOptions>();
  auto* bake = image->add_subcommand("bake", "Make one, or make it anew");
  bake->add_option("NAME", options->name, "Its name: base and micro are the usual ones")
      ->required()
      ->type_name("");
  bake->add_option("--kind", options->kind, "base (Debian on a disk) or micro (no disk)")
      ->type_name("KIND");
  bake->add_option("--disk", options->disk, "Size of the disk, as in 8GB")->type_name("SIZE");
  bake->add_option("--package", options->packages, "One more Debian package inside")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  auto* with = bake->add_option("--with", options->features,
                                "containers: what a Fusefile's services run in (podman)");
  must_be_one_of(with->type_name("FEATURE")->expected(1)->take_all(), {"containers"});
  bake->callback([&invocation, options] {
    invocation.action = [&invocation, options] {
      return run_image_bake(invocation.context, *options);
    };
  });
  add_image_upkeep(*image, invocation);
}

}  // namespace fuse::cmd
