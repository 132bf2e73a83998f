#include "cmd/manual.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "cmd/agent_settings.h"
#include "cmd/command_tree.h"
#include "cmd/exit_codes.h"
#include "cmd/orchestrator_settings.h"
#include "cmd/roff.h"

namespace fuse::cmd {

namespace {

struct NamedText {
  std::string_view name;
  std::string_view text;
};

constexpr std::array<NamedText, 9> variables = {{
    {"FUSE_URL", "The orchestrator to talk to, before any context."},
    {"FUSE_TOKEN", "The token for FUSE_URL."},
    {"FUSE_CA_FILE", "Authorities that certificates are verified with, instead of the machine's."},
    {"FUSE_STATE", "Folder of this machine's own environments."},
    {"FUSE_IMAGES", "Folder of the guest images."},
    {"FUSE_ACCEL", "How VMs run on this machine: auto, kvm or tcg."},
    {"XDG_STATE_HOME", "Where FUSE_STATE is, as \"fuse\" in it, when that is not set."},
    {"XDG_CONFIG_HOME", "Where the file of the contexts is."},
    {"NO_COLOR", "Not empty: no colours."},
}};

constexpr std::array<NamedText, 2> files = {{
    {"~/.config/fuse/config.yaml",
     "The contexts, unless XDG_CONFIG_HOME or --config says another."},
    {"~/.local/state/fuse", "State and images, unless XDG_STATE_HOME or FUSE_STATE says another."},
}};

// What a service is told besides its command line.
struct Service {
  SettingFile known;
  std::string_view usual_file;
};

std::optional<Service> service_of(std::string_view path) {
  if (path == "fuse agent serve") return Service{agent_setting_file(), usual_agent_file};
  if (path == "fuse orchestrator serve") {
    return Service{orchestrator_setting_file(), usual_orchestrator_file};
  }
  return std::nullopt;
}

bool is_own(const CLI::App& command, const CLI::Option* option) {
  return option != command.get_help_ptr();
}

bool has_page(const CLI::App& command) {
  return command.get_parent() == nullptr ||
         std::ranges::any_of(command.get_options(),
                             [&](const CLI::Option* option) { return is_own(command, option); });
}

std::string page_name(std::string path) {
  std::ranges::replace(path, ' ', '-');
  return path;
}

int section_of(std::string_view path) {
  return path.starts_with("fuse agent") || path.starts_with("fuse orchestrator") ? 8 : 1;
}

std::string link_to(std::string_view name, int section) {
  return cat(".BR ", roff_text(name), " (", section, ")");
}

// "Run a job" as manuals have it: "run a job"; a name in capitals stays.
std::string summary_of(const CLI::App& command) {
  std::string text = command.get_description();
  if (text.ends_with('.')) text.pop_back();
  const auto is_upper = [&](std::size_t i) {
    return i < text.size() && std::isupper(static_cast<unsigned char>(text[i])) != 0;
  };
  if (is_upper(0) && !is_upper(1)) text[0] = lowercase(text.substr(0, 1))[0];
  return text;
}

std::string positional_text(const CLI::Option& option) {
  const std::string name =
      cat(roff_italic(option.get_name()), option.get_expected_max() > 1 ? "..." : "");
  return option.get_required() ? name : cat("[", name, "]");
}

void add_synopsis(RoffPage& page, const CLI::App& command, const std::string& path) {
  page.heading("SYNOPSIS");
  std::string line = cat(roff_bold(path), " [", roff_italic("OPTION"), "...]");
  if (!commands_of(command).empty()) line += cat(" ", roff_italic("COMMAND"));
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) line += cat(" ", positional_text(*option));
  }
  page.raw(line);
}

// "-o, --output FORM"
std::string label_of(const CLI::Option& option) {
  if (option.get_positional()) return roff_italic(option.get_name());
  std::string label;
  const auto add = [&](const std::string& name) {
    label += cat(label.empty() ? "" : ", ", roff_bold(name));
  };
  for (const std::string& name : option.get_snames()) add(cat("-", name));
  for (const std::string& name : option.get_lnames()) add(cat("--", name));
  if (option.get_items_expected_max() > 0) label += cat(" ", roff_italic(option.get_type_name()));
  return label;
}

void add_options(RoffPage& page, const CLI::App& command) {
  page.heading("OPTIONS");
  for (const bool positional : {true, false}) {
    for (const CLI::Option* option : command.get_options()) {
      if (option->get_positional() != positional) continue;
      page.item(label_of(*option), option->get_description());
    }
  }
}

void add_tree(RoffPage& page, const CLI::App& command, const std::string& path) {
  for (const CLI::App* below : shown_commands(command)) {
    const std::string name = cat(path, " ", below->get_name());
    std::string label = roff_bold(name);
    for (const std::string& alias : below->get_aliases()) label += cat(", ", roff_bold(alias));
    page.item(label, below->get_description());
    add_tree(page, *below, name);
  }
}

void add_exit_status(RoffPage& page, const CLI::App& command) {
  const bool is_root = command.get_parent() == nullptr;
  const bool has_guest_code = exits_with_guest_code(command.get_name());
  page.heading("EXIT STATUS");
  if (has_guest_code) {
    page.paragraph("That of the program in the guest, 128 + n when signal n ended it, or:");
  }
  for (const auto& [code, meaning] : exit_code_meanings) {
    const bool fits = has_guest_code ? code >= time_limit : code < time_limit;
    if (is_root || fits) page.item(roff_bold(cat(int{code})), meaning);
  }
}

void add_service(RoffPage& page, const Service& service) {
  page.heading("ENVIRONMENT");
  page.paragraph("An option goes before a variable, and a variable before a line of the file.");
  for (const std::string_view secret : service.known.secrets) {
    page.item(roff_bold(secret), "A secret, which no option gives: others would see it.");
  }
  for (const Setting& setting : service.known.settings) {
    page.item(roff_bold(setting.variable), cat("As ", setting.flag, "."));
  }
  page.heading("FILES");
  page.item(roff_bold(service.usual_file), "The same settings, NAME=VALUE a line.");
}

void add_named(RoffPage& page, std::string_view heading, std::span<const NamedText> all) {
  page.heading(heading);
  for (const auto& [name, text] : all) page.item(roff_bold(name), text);
}

struct Found {
  const CLI::App* command;
  std::string path;
};

void find_pages(const CLI::App& command, const std::string& path, std::vector<Found>& found) {
  if (has_page(command)) found.push_back({&command, path});
  for (const CLI::App* below : shown_commands(command)) {
    find_pages(*below, cat(path, " ", below->get_name()), found);
  }
}

// The page of the whole names all; the others name it, and those beside them.
void add_links(RoffPage& page, const Found& here, const std::vector<Found>& all) {
  const CLI::App* const parent = here.command->get_parent();
  const bool in_group = parent != nullptr && parent->get_parent() != nullptr;
  page.heading("SEE ALSO");
  for (const Found& other : all) {
    const CLI::App* const above = other.command->get_parent();
    const bool is_linked = parent == nullptr || above == nullptr || (in_group && above == parent);
    if (!is_linked || other.command == here.command) continue;
    page.raw(cat(link_to(page_name(other.path), section_of(other.path)), ","));
  }
  page.raw(link_to("Fusefile", 5));
}

ManualPage page_of(const Found& here, const std::vector<Found>& all) {
  const bool is_root = here.command->get_parent() == nullptr;
  const std::string name = page_name(here.path);
  const int section = section_of(here.path);
  RoffPage page(name, section, summary_of(*here.command));
  add_synopsis(page, *here.command, here.path);
  page.heading("DESCRIPTION");
  std::string description = here.command->get_description();
  if (!description.ends_with('.')) description += '.';
  page.paragraph(description);
  if (is_root) {
    page.heading("COMMANDS");
    add_tree(page, *here.command, here.path);
  }
  add_options(page, *here.command);
  if (!is_root) page.raw(".PP\nThe options in\n.BR fuse (1)\nmay stand here too.");
  add_exit_status(page, *here.command);
  if (const auto service = service_of(here.path)) add_service(page, *service);
  if (is_root) {
    add_named(page, "ENVIRONMENT", variables);
    add_named(page, "FILES", files);
  }
  add_links(page, here, all);
  return {.name = name, .section = section, .text = page.text()};
}

}  // namespace

std::vector<ManualPage> manual_of(const CLI::App& root) {
  std::vector<Found> found;
  find_pages(root, root.get_name(), found);
  std::vector<ManualPage> pages;
  pages.reserve(found.size() + 1);
  for (const Found& here : found) pages.push_back(page_of(here, found));
  pages.push_back(fusefile_page());
  return pages;
}

}  // namespace fuse::cmd
