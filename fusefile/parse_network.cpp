#include <map>
#include <utility>

#include "base/quote.h"
#include "base/text.h"
#include "base/units.h"
#include "fusefile/grammar.h"
#include "fusefile/sections.h"

namespace fuse {

namespace {

using std::chrono::nanoseconds;

constexpr std::int32_t highest_port = 65535;
constexpr std::int32_t fewest_pixels = 320;
constexpr std::int32_t most_pixels = 3840;

std::string hint_for_name(std::string_view written) {
  const std::string label = to_dns_label(written);
  return cat("write ", label.empty() ? "letters and digits, as in http" : label);
}

bool check_port(const std::string& path, std::int32_t port, Report& report) {
  if (port >= 1 && port <= highest_port) return true;
  if (!report.blamed(path)) {
    report.error(ProblemCode::out_of_range, path, "must be between 1 and 65535",
                 "write the port that the program listens on, as in 8080");
  }
  return false;
}

nanoseconds read_positive(MapReader& map, std::string_view key, Report& report) {
  const auto time = map.duration(key);
  if (!time) return {};
  if (time->count() <= 0) {
    report.error(ProblemCode::out_of_range, map.path_of(key),
                 cat("must be positive, got ", in_quotes(map.written(key))),
                 "write a duration as 10s, or leave it out");
  }
  return *time;
}

Fusefile::HttpProbe read_http_probe(const YamlNode* node, Report& report) {
  MapReader map(node, "healthcheck.http", "healthcheck.http", report);
  Fusefile::HttpProbe probe{map.whole("port").value_or(0), map.text_or_empty("path")};
  if (!report.blamed("healthcheck.http")) check_port(map.path_of("port"), probe.port, report);
  if (!probe.path.empty() && !probe.path.starts_with('/')) {
    report.error(ProblemCode::bad_value, map.path_of("path"),
                 cat("must start with a slash, got ", in_quotes(probe.path)),
                 cat("write ", in_quotes(cat("/", probe.path))));
  }
  return probe;
}

void check_probe(const Fusefile::Healthcheck& healthcheck, Report& report) {
  for (std::size_t i = 0; i < healthcheck.exec.size(); ++i) {
    const std::string path = path_item("healthcheck.exec", i);
    if (healthcheck.exec[i].empty() && !report.blamed(path)) {
      report.error(ProblemCode::required, path, "must not be empty",
                   "write the argument, or drop the entry");
    }
  }
  if (healthcheck.http && !healthcheck.exec.empty()) {
    report.error(ProblemCode::exclusive, "healthcheck", "http and exec are mutually exclusive",
                 "keep one of the two");
  } else if (!healthcheck.http && healthcheck.exec.empty() && !report.blamed("healthcheck") &&
             !report.blamed("healthcheck.http") && !report.blamed("healthcheck.exec")) {
    report.error(ProblemCode::required, "healthcheck", "http or exec is required",
                 "add http: {port: 8080} or exec: [COMMAND]");
  }
}

std::int32_t read_pixels(MapReader& map, std::string_view key, Report& report) {
  const std::int32_t pixels = map.whole(key).value_or(0);
  const std::string path = map.path_of(key);
  if ((pixels < fewest_pixels || pixels > most_pixels) && !report.blamed(path)) {
    report.error(ProblemCode::out_of_range, path,
                 cat("must be between ", fewest_pixels, " and ", most_pixels, ", got ", pixels),
                 "write pixels, as in {width: 1280, height: 720}");
  }
  return pixels;
}

}  // namespace

std::vector<Fusefile::Expose> read_expose(MapReader& top, Report& report) {
  std::vector<Fusefile::Expose> exposed;
  std::map<std::int32_t, std::size_t> ports;
  std::map<std::string, std::size_t> names;
  for (const YamlField& field : top.items("expose")) {
    MapReader map(field.node, "expose[]", field.path, report);
    Fusefile::Expose entry{map.whole("port").value_or(0), map.text_or_empty("as")};
    const std::string port = map.path_of("port");
    if (!report.blamed(field.path) && check_port(port, entry.port, report)) {
      if (const auto [first, is_new] = ports.emplace(entry.port, exposed.size()); !is_new) {
        report.error(ProblemCode::repeated_value, port,
                     cat(entry.port, " is already exposed by ", path_item("expose", first->second)),
                     "keep one of the two");
      }
    }
    const std::string as = map.path_of("as");
    if (!entry.as.empty() && !is_dns_label(entry.as)) {
      report.error(ProblemCode::bad_value, as,
                   cat("invalid name ", in_quotes(entry.as),
                       " (lowercase letters, digits and dashes, 63 chars max)"),
                   hint_for_name(entry.as));
    } else if (!entry.as.empty()) {
      if (const auto [first, is_new] = names.emplace(entry.as, exposed.size()); !is_new) {
        report.error(
            ProblemCode::repeated_value, as,
            cat(in_quotes(entry.as), " is already used by ", path_item("expose", first->second)),
            "give each a name of its own");
      }
    }
    exposed.push_back(std::move(entry));
  }
  return exposed;
}

std::optional<Fusefile::Healthcheck> read_healthcheck(const YamlNode* node, Report& report) {
  if (node == nullptr) return std::nullopt;
  MapReader map(node, "healthcheck", "healthcheck", report);
  Fusefile::Healthcheck healthcheck;
  if (const YamlNode* http = map.map("http")) healthcheck.http = read_http_probe(http, report);
  healthcheck.exec = map.texts("exec");
  healthcheck.interval = read_positive(map, "interval", report);
  healthcheck.timeout = read_positive(map, "timeout", report);
  healthcheck.retries = map.whole("retries").value_or(0);
  healthcheck.start_period = read_positive(map, "start_period", report);
  check_probe(healthcheck, report);
  if (healthcheck.retries < 0) {
    report.error(ProblemCode::out_of_range, map.path_of("retries"), "must not be negative",
                 "write how many attempts may fail in a row, as in 3");
  }
  if (healthcheck.interval.count() > 0 && healthcheck.timeout > healthcheck.interval) {
    report.error(ProblemCode::out_of_range, map.path_of("timeout"),
                 cat("must not exceed healthcheck.interval (", to_string(healthcheck.timeout),
                     " > ", to_string(healthcheck.interval), "); attempts run one at a time"),
                 cat("write ", map.written("interval"), " or less, or a longer interval"));
  }
  return healthcheck;
}

std::optional<Fusefile::Desktop> read_desktop(const YamlNode* node, Report& report) {
  if (node == nullptr) return std::nullopt;
  MapReader map(node, "desktop", "desktop", report);
  if (report.blamed("desktop")) return std::nullopt;
  return Fusefile::Desktop{read_pixels(map, "width", report), read_pixels(map, "height", report)};
}

}  // namespace fuse
