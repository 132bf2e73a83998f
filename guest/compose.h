#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "base/result.h"

namespace fuse {

// How the services of a guest are brought up.
struct ComposePlan {
  std::vector<std::string> argv{};
  std::vector<std::string> environment{};  // "K=V", beside the usual one
  fs::path daemon{};  // the socket that has to be there first; empty: none is needed
  // Lists the containers as JSON, for means whose exit code does not say that one was
  // not started; empty: the code is enough.
  std::vector<std::string> list{};
};

// The means that an image offers for `compose_file`: podman-compose, which needs no
// daemon, else docker's own.  `exists` tells of absolute paths.  not_found, in words,
// when there is none.
Result<ComposePlan> plan_compose(const std::function<bool(const fs::path&)>& exists,
                                 const fs::path& compose_file);

// The services of a compose file that have no container which was started, according
// to podman's list of them.  None when either text is not understood: a compose file
// may also be YAML that is no JSON.
std::vector<std::string> services_not_started(std::string_view compose_file,
                                              std::string_view containers);

// The lines of what a tool printed that tell of errors, else its last few.
std::string telling_lines(std::string_view output);

}  // namespace fuse
