#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fusefile/diagnostics.h"
#include "fusefile/locations.h"

namespace fuse {

// A Fusefile that was read and checked.  "" and 0 and empty containers mean not
// set unless an optional says otherwise.
struct Fusefile {
  struct Resources {
    std::int32_t cpus = 0;
    std::int32_t memory_mib = 0;
    std::int32_t storage_mib = 0;  // disk or storage, whichever was set
    std::int32_t gpu = 0;
    std::string gpu_kind{};
    std::string gpu_profile{};  // lower case
    std::string region{};
    std::chrono::nanoseconds max_runtime{};
    std::chrono::nanoseconds idle_timeout{};
  };
  struct Placement {
    std::string host{};
    std::map<std::string, std::string> labels{};
  };
  // Exactly one of the two is set.
  struct EnvValue {
    std::string value{};
    std::string secret{};
  };
  using Env = std::map<std::string, EnvValue>;
  struct Step {
    std::string run{};
    std::vector<std::string> inputs{};
    std::optional<bool> cache{};
    std::string workdir{};
  };
  // Shell text, or an argv.
  using Run = std::variant<std::string, std::vector<std::string>>;
  // Carried as written, unchecked.
  struct ServiceHealthcheck {
    std::vector<std::string> test{};
    std::string interval{};
    std::string timeout{};
    std::int64_t retries = 0;
  };
  struct Service {
    std::string image{};
    std::vector<std::int32_t> ports{};
    Env env{};
    std::vector<std::string> command{};
    std::string restart{};
    std::optional<ServiceHealthcheck> healthcheck{};
    std::vector<std::string> depends_on{};
  };
  // Exactly one of source and content is set.
  struct FileEntry {
    std::string path{};
    std::string source{};
    std::optional<std::string> content{};
    std::string mode{};
  };
  struct CopyEntry {
    std::string from{};
    std::string to{};
  };
  struct Expose {
    std::int32_t port = 0;
    std::string as{};
  };
  struct HttpProbe {
    std::int32_t port = 0;
    std::string path{};
  };
  // Exactly one of http and exec is set.
  struct Healthcheck {
    std::optional<HttpProbe> http{};
    std::vector<std::string> exec{};
    std::chrono::nanoseconds interval{};
    std::chrono::nanoseconds timeout{};
    std::int32_t retries = 0;
    std::chrono::nanoseconds start_period{};
  };
  struct Desktop {
    std::int32_t width = 0;
    std::int32_t height = 0;
  };

  std::string name{};
  std::string image{};
  Resources resources{};
  Placement placement{};
  std::optional<bool> cache_enabled{};
  Env env{};
  std::vector<Step> build{};
  std::optional<Run> run{};  // absent also for an empty string
  std::map<std::string, Service> services{};
  std::vector<FileEntry> files{};
  std::vector<CopyEntry> copy{};
  std::string workspace = "/workspace";
  std::vector<Expose> expose{};
  std::optional<Healthcheck> healthcheck{};
  std::optional<Desktop> desktop{};
  std::vector<std::string> secrets{};
  std::chrono::nanoseconds startup_timeout{};

  // Where its fields stand, for problems that later passes find.
  Locations locations{};
};

// What a text came to: `file` is there when `diagnostics` holds no error.
struct ParsedFusefile {
  std::optional<Fusefile> file{};
  // Of a mapping with problems, what was understood: to look for more problems
  // in what it names, never to be compiled.
  std::optional<Fusefile> draft{};
  Diagnostics diagnostics{};
};

// Reads and checks a Fusefile.  Finds every problem in one run, except that a
// text which is no YAML has only that one.  Pure; time and memory are bounded
// for any input.
ParsedFusefile parse_fusefile(std::string_view text);

}  // namespace fuse
