#include "fusefile/keys.h"

#include <algorithm>
#include <array>

namespace fuse {

namespace {

constexpr std::string_view port_schema = R"("minimum": 1, "maximum": 65535)";
constexpr std::string_view pixels_schema = R"("minimum": 320, "maximum": 3840)";
constexpr std::string_view filled_schema = R"("minLength": 1)";
constexpr std::string_view no_parent_schema =
    R"j("minLength": 1, "not": {"pattern": "(^|/)\\.\\.(/|$)"})j";

// clang-format off
constexpr auto table = std::to_array<KeyInfo>({
    {"", "version", KeyType::whole, "", true,
     "The version of the format: always 1.",
     "1", R"("const": 1)"},
    {"", "name", KeyType::text, "", false,
     "The task id, a DNS label. Without it the Fusefile's folder gives the name.",
     "train-llm", R"j("pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")j"},
    {"", "image", KeyType::text, "", false,
     "The guest image, by the name it was baked under on the host. Not an OCI reference.",
     "cuda-12"},
    {"", "resources", KeyType::map, "resources", false,
     "What the environment gets, and for how long.",
     "{cpus: 4, memory: 16GB}"},
    {"", "placement", KeyType::map, "placement", false,
     "Where the environment may run.",
     "{host: gpu-1}"},
    {"", "cache", KeyType::map, "cache", false,
     "Whether build steps may come from a layer cache.",
     "{enabled: false}"},
    {"", "env", KeyType::map_of, "env.*", false,
     "Environment variables of the build steps and of run. A name has letters, digits and "
     "underscores and does not start with a digit.",
     "{MODE: {value: fast}}", R"("propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"})"},
    {"", "build", KeyType::steps, "build[]", false,
     "Steps that prepare the environment, in order, in the workspace. A step that fails ends it.",
     "[pip install -r requirements.txt]"},
    {"", "setup", KeyType::steps, "build[]", false,
     "The old name of build. Set one of the two.",
     "[make deps]", R"("deprecated": true)"},
    {"", "run", KeyType::command, "", false,
     "The job: shell text, or an argv as a list of strings.",
     "python train.py --epochs 50"},
    {"", "services", KeyType::map_of, "services.*", false,
     "Containers that run beside the job, by name. The image needs a container runtime.",
     "{db: {image: \"postgres:16\"}}"},
    {"", "files", KeyType::list_of, "files[]", false,
     "Small files to write into the guest, at most 65536 bytes in all.",
     "[{path: conf/app.ini, content: \"debug=1\\n\"}]"},
    {"", "copy", KeyType::list_of, "copy[]", false,
     "Files and folders to bring along, at most 524288 bytes in all. .fuseignore beside the "
     "Fusefile leaves out parts of folders.",
     "[{from: src, to: src}]"},
    {"", "workspace", KeyType::text, "", false,
     "The absolute folder in the guest where everything happens. Default: /workspace.",
     "/workspace", R"j("pattern": "^/", "not": {"pattern": "(^|/)\\.\\.(/|$)"})j"},
    {"", "expose", KeyType::list_of, "expose[]", false,
     "Ports of the guest to make reachable.",
     "[{port: 8080, as: http}]"},
    {"", "healthcheck", KeyType::map, "healthcheck", false,
     "A probe that tells whether the environment works: http or exec.",
     "{http: {port: 8080, path: /healthz}, interval: 10s}"},
    {"", "desktop", KeyType::map, "desktop", false,
     "The size of a screen, in pixels.",
     "{width: 1280, height: 720}"},
    {"", "secrets", KeyType::texts, "", false,
     "Names of secrets that have to be given when the environment is created.",
     "[hf_token]"},
    {"", "startup_timeout", KeyType::duration, "", false,
     "How long the startup script may take, in whole seconds, rounded up.",
     "10m"},

    {"resources", "cpus", KeyType::cpus, "", false,
     "Whole vCPUs. 0 or absent: the host's default.",
     "16", R"("minimum": 0)"},
    {"resources", "memory", KeyType::size, "", false,
     "Memory: a number and a unit, every unit binary.",
     "64GB"},
    {"resources", "disk", KeyType::size, "", false,
     "Size of the root disk, rounded up to whole GB.",
     "100GB"},
    {"resources", "storage", KeyType::size, "", false,
     "Another name of disk.",
     "100GB"},
    {"resources", "gpu", KeyType::whole, "", false,
     "How many GPUs; with gpu_profile, how many MIG instances. Never a fraction.",
     "1", R"("minimum": 0)"},
    {"resources", "gpu_kind", KeyType::text, "", false,
     "The GPU's model, matched as a part of its name in any case.",
     "a100"},
    {"resources", "gpu_profile", KeyType::text, "", false,
     "The MIG profile of each instance: compute slices, then memory. Needs gpu of 1 or more.",
     "1g.10gb", R"j("pattern": "^[1-7][Gg]\\.[0-9]+[Gg][Bb](\\+[Mm][Ee])?$")j"},
    {"resources", "region", KeyType::text, "", false,
     "The region a host has to be in, exactly as it was registered.",
     "eu-west"},
    {"resources", "max_runtime", KeyType::duration, "", false,
     "How long the environment may live, in whole seconds, rounded down. 0: no limit.",
     "12h"},
    {"resources", "idle_timeout", KeyType::duration, "", false,
     "How long it may be idle: 1m or more, 0 for no limit.",
     "30m"},

    {"placement", "host", KeyType::text, "", false,
     "The id of the one host to run on.",
     "gpu-1"},
    {"placement", "labels", KeyType::text_map, "", false,
     "Labels a host has to have. Names and values have letters, digits, '-', '_' and '.', and "
     "begin and end with a letter or digit.",
     "{zone: a}"},

    {"cache", "enabled", KeyType::flag, "", false,
     "Whether to use the layer cache. Environments with GPUs never do.",
     "false"},

    {"env.*", "value", KeyType::text, "", false,
     "The value itself.",
     "fast"},
    {"env.*", "secret", KeyType::text, "", false,
     "The name of the secret that is the value.",
     "hf_token"},

    {"build[]", "run", KeyType::text, "", true,
     "The step: shell text.",
     "make deps", filled_schema},
    {"build[]", "inputs", KeyType::texts, "", false,
     "What the step depends on, relative to the Fusefile. Not with cache: false.",
     "[requirements.txt]"},
    {"build[]", "cache", KeyType::flag, "", false,
     "Whether the step may come from the layer cache.",
     "true"},
    {"build[]", "workdir", KeyType::text, "", false,
     "The folder to run in, from the workspace.",
     "src", no_parent_schema},

    {"services.*", "image", KeyType::text, "", true,
     "The container image, an OCI reference.",
     "\"postgres:16\"", filled_schema},
    {"services.*", "ports", KeyType::wholes, "", false,
     "Ports to publish in the guest under the same number.",
     "[5432]"},
    {"services.*", "env", KeyType::map_of, "env.*", false,
     "Environment variables of the container.",
     "{POSTGRES_PASSWORD: {secret: pg_password}}"},
    {"services.*", "command", KeyType::texts, "", false,
     "The command to run instead of the image's.",
     "[postgres, -c, fsync=off]"},
    {"services.*", "restart", KeyType::text, "", false,
     "When to start it again: no, always, on-failure or unless-stopped.",
     "always", "", "no, always, on-failure, unless-stopped"},
    {"services.*", "healthcheck", KeyType::map, "services.*.healthcheck", false,
     "The container's own health check.",
     "{test: [CMD, pg_isready], interval: 5s}"},
    {"services.*", "depends_on", KeyType::texts, "", false,
     "Services to start first.",
     "[cache]"},

    {"services.*.healthcheck", "test", KeyType::texts, "", false,
     "The command to test with, as compose files have it.",
     "[CMD, pg_isready]"},
    {"services.*.healthcheck", "interval", KeyType::text, "", false,
     "Time between two tests.",
     "5s"},
    {"services.*.healthcheck", "timeout", KeyType::text, "", false,
     "Time after which a test has failed.",
     "3s"},
    {"services.*.healthcheck", "retries", KeyType::whole, "", false,
     "Failed tests in a row that make it unhealthy.",
     "3"},

    {"files[]", "path", KeyType::text, "", true,
     "Where the file goes; relative paths start in the workspace.",
     "conf/app.ini", filled_schema},
    {"files[]", "source", KeyType::text, "", false,
     "A file beside the Fusefile that has the content.",
     "app.ini"},
    {"files[]", "content", KeyType::text, "", false,
     "The content itself.",
     "\"debug=1\\n\""},
    {"files[]", "mode", KeyType::text, "", false,
     "Permissions, three octal digits.",
     "0644", R"("pattern": "^0?[0-7]{3}$")"},

    {"copy[]", "from", KeyType::text, "", true,
     "A file or folder, relative to the Fusefile.",
     "src", filled_schema},
    {"copy[]", "to", KeyType::text, "", true,
     "Where it goes; relative paths start in the workspace. Not /fuse or below.",
     "src", no_parent_schema},

    {"expose[]", "port", KeyType::whole, "", true,
     "The guest's port, 1 to 65535, each once.",
     "8080", port_schema},
    {"expose[]", "as", KeyType::text, "", false,
     "A name for it, a DNS label, each once.",
     "http"},

    {"healthcheck", "http", KeyType::map, "healthcheck.http", false,
     "A request that has to succeed.",
     "{port: 8080, path: /healthz}"},
    {"healthcheck", "exec", KeyType::texts, "", false,
     "A command that has to succeed.",
     "[test, -f, ready]", R"("minItems": 1)"},
    {"healthcheck", "interval", KeyType::duration, "", false,
     "Time between two attempts, in whole seconds, rounded up.",
     "10s"},
    {"healthcheck", "timeout", KeyType::duration, "", false,
     "Time after which an attempt has failed; not above interval.",
     "5s"},
    {"healthcheck", "retries", KeyType::whole, "", false,
     "Failed attempts in a row that make it unhealthy.",
     "3", R"("minimum": 0)"},
    {"healthcheck", "start_period", KeyType::duration, "", false,
     "Time at the start in which failures do not count.",
     "30s"},

    {"healthcheck.http", "port", KeyType::whole, "", true,
     "The guest's port to ask.",
     "8080", port_schema},
    {"healthcheck.http", "path", KeyType::text, "", false,
     "What to ask for; starts with a slash.",
     "/healthz", R"("pattern": "^/")"},

    {"desktop", "width", KeyType::whole, "", true,
     "Pixels from left to right, 320 to 3840.",
     "1280", pixels_schema},
    {"desktop", "height", KeyType::whole, "", true,
     "Pixels from top to bottom, 320 to 3840.",
     "720", pixels_schema},
});
// clang-format on

constexpr auto sections = std::to_array<SectionInfo>({
    {"", "the file", R"("not": {"required": ["build", "setup"]})"},
    {"resources", "resources"},
    {"placement", "placement"},
    {"cache", "cache"},
    {"env.*", "a variable of env",
     R"("oneOf": [{"required": ["value"]}, {"required": ["secret"]}])"},
    {"build[]", "a step of build"},
    {"services.*", "a service"},
    {"services.*.healthcheck", "the healthcheck of a service"},
    {"files[]", "an entry of files",
     R"("oneOf": [{"required": ["source"]}, {"required": ["content"]}])"},
    {"copy[]", "an entry of copy"},
    {"expose[]", "an entry of expose"},
    {"healthcheck", "healthcheck", R"("oneOf": [{"required": ["http"]}, {"required": ["exec"]}])"},
    {"healthcheck.http", "healthcheck.http"},
    {"desktop", "desktop"},
});

}  // namespace

std::string_view words_for(KeyType type) {
  switch (type) {
    case KeyType::whole:
    case KeyType::cpus:
      return "whole number";
    case KeyType::text:
      return "text";
    case KeyType::flag:
      return "true or false";
    case KeyType::size:
      return "size";
    case KeyType::duration:
      return "duration";
    case KeyType::texts:
      return "list of texts";
    case KeyType::wholes:
      return "list of whole numbers";
    case KeyType::text_map:
      return "names and texts";
    case KeyType::map:
      return "keys below";
    case KeyType::map_of:
      return "names, each with keys below";
    case KeyType::list_of:
      return "list, each with keys below";
    case KeyType::steps:
      return "list of texts, or of keys below";
    case KeyType::command:
      return "text, or list of texts";
  }
  return "";
}

std::span<const SectionInfo> all_sections() {
  return sections;
}

std::span<const KeyInfo> all_keys() {
  return table;
}

std::vector<const KeyInfo*> keys_of(std::string_view section) {
  std::vector<const KeyInfo*> keys;
  for (const KeyInfo& key : table) {
    if (key.section == section) keys.push_back(&key);
  }
  return keys;
}

std::vector<std::string_view> names_of(std::string_view section) {
  std::vector<std::string_view> names;
  for (const KeyInfo* key : keys_of(section)) names.push_back(key->name);
  return names;
}

std::vector<std::string_view> values_of(const KeyInfo& key) {
  constexpr std::string_view between = ", ";
  std::vector<std::string_view> values;
  for (std::string_view rest = key.values; !rest.empty();) {
    const std::size_t end = std::min(rest.find(between), rest.size());
    values.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + between.size(), rest.size()));
  }
  return values;
}

const KeyInfo* find_key(std::string_view section, std::string_view name) {
  const auto* const it = std::find_if(table.begin(), table.end(), [&](const KeyInfo& key) {
    return key.section == section && key.name == name;
  });
  return it == table.end() ? nullptr : it;
}

}  // namespace fuse
