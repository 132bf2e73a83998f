#pragma once

#include <string>
#include <vector>

#include "cmd/context.h"
#include "fusefile/secrets.h"

namespace CLI {
class App;
}

namespace fuse::cmd {

struct SecretOptions {
  std::vector<std::string> secrets{};  // --secret
  std::string file{};                  // --secrets-file
  bool allow_empty = false;
};

void add_secret_options(CLI::App& command, SecretOptions& options);

// The values given on the command line and in the file; --secret wins.
GivenSecrets read_secrets(Context& context, const SecretOptions& options);

}  // namespace fuse::cmd
