#include <CLI/CLI.hpp>
#include <memory>

#include "base/text.h"
#include "cmd/commands.h"
#include "cmd/manual.h"

namespace fuse::cmd {

namespace {

int write_manual(Context& context, const CLI::App& root, const std::string& directory) {
  for (const ManualPage& page : manual_of(root)) {
    const fs::path dir = context.directory / directory / cat("man", page.section);
    const auto made = context.host.make_dirs(dir, 0755);
    const auto written =
        made ? context.host.write_file(dir / cat(page.name, ".", page.section), page.text) : made;
    if (!written) return context.fail(written.error());
  }
  return success;
}

}  // namespace

void add_man_pages(CLI::App& app, Invocation& invocation) {
  const auto directory = std::make_shared<std::string>();
  auto* pages =
      app.add_subcommand("man-pages", "Write the manual below a folder, as man1 and so on");
  pages->group("");
  pages->add_option("DIR", *directory, "The folder, as /usr/share/man")->required()->type_name("");
  pages->callback([&app, &invocation, directory] {
    invocation.action = [&app, &invocation, directory] {
      return write_manual(invocation.context, app, *directory);
    };
  });
}

}  // namespace fuse::cmd
