#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "fusefile/fusefile.h"
#include "fusefile/map_reader.h"
#include "fusefile/report.h"

namespace fuse {

// The readers of a Fusefile's sections.  Each reports every mistake it finds
// and still returns what it understood, so that one run shows them all.

Fusefile::Resources read_resources(const YamlNode* node, Report& report);
Fusefile::Placement read_placement(const YamlNode* node, Report& report);

// `key` is build or setup.
std::vector<Fusefile::Step> read_steps(MapReader& top, std::string_view key, Report& report);
std::optional<Fusefile::Run> read_run(MapReader& top, Report& report);

Fusefile::Env read_env(MapReader& top, Report& report);
std::map<std::string, Fusefile::Service> read_services(MapReader& top, Report& report);

std::vector<Fusefile::FileEntry> read_files(MapReader& top, Report& report);
std::vector<Fusefile::CopyEntry> read_copy(MapReader& top, std::string_view workspace,
                                           Report& report);

std::vector<Fusefile::Expose> read_expose(MapReader& top, Report& report);
std::optional<Fusefile::Healthcheck> read_healthcheck(const YamlNode* node, Report& report);
std::optional<Fusefile::Desktop> read_desktop(const YamlNode* node, Report& report);

}  // namespace fuse
