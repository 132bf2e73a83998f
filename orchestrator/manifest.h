#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace fuse {

// A value in a manifest's env: given, or the name of a secret.
struct ManifestValue {
  std::string value{};
  std::string secret{};  // not empty: the value is this secret's
};

struct ManifestService {
  std::string image{};
  std::vector<std::int64_t> ports{};
  std::map<std::string, ManifestValue> env{};
  std::vector<std::string> command{};
  std::string restart{};
  std::vector<std::string> test{};  // of its healthcheck, with the three below
  std::string interval{};
  std::string timeout{};
  std::int64_t retries = 0;
  std::vector<std::string> depends_on{};
};

// What a guest is told about itself: the document that create's manifest_inline
// carries.
struct Manifest {
  std::string text{};  // as received, for /fuse/manifest.json
  std::map<std::string, ManifestValue> env{};
  std::map<std::string, ManifestService> services{};
};

// Reads base64 of JSON; nothing given is the empty manifest.  The error's
// message begins "decode manifest_inline: ".
Result<Manifest> parse_manifest(const std::string& manifest_inline);

// The names of all secrets that the manifest refers to.
std::set<std::string> required_secrets(const Manifest& manifest);

// The environment block with its secrets filled in.  Names that no shell takes
// are left out.
std::map<std::string, std::string> resolved_env(const Manifest& manifest,
                                                const std::map<std::string, std::string>& secrets);

// /fuse/env: a line NAME='value' for each.
std::string env_file(const std::map<std::string, std::string>& env);

// /fuse/compose.yaml, written as JSON, which YAML readers take, so that no
// string can be mistaken for a number; empty without services.
std::string compose_file(const Manifest& manifest,
                         const std::map<std::string, std::string>& secrets);

}  // namespace fuse
