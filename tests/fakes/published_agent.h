#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/posix_host.h"
#include "net/http.h"

namespace fuse {

// A host agent of the kind that was there before ours: the published wire alone,
// no features, no uids, no jobs, sizes and kinds taken at their word.  Its guests
// are a folder of this machine: commands run here, and files below that folder are
// written.  Safe from several threads.
class PublishedAgent {
 public:
  explicit PublishedAgent(fs::path folder) : folder_(std::move(folder)) {}

  [[nodiscard]] HttpHandler handler();
  // "POST /v1/vm", in the order in which they came.
  [[nodiscard]] std::vector<std::string> lines() const;
  // The bodies of creates.
  [[nodiscard]] std::vector<std::string> creates() const;
  // Drops the answer to the next create: it was made, but nobody is told.
  bool lose_next_create = false;
  // Calls its start-agent route start-surfd, as a firecracker agent may.
  bool surfd = false;

 private:
  HttpResponse answer(const HttpRequest& request);
  HttpResponse create(const HttpRequest& request);
  HttpResponse list(const HttpRequest& request) const;
  HttpResponse of_vm(const HttpRequest& request, const std::string& vm_id, const std::string& verb);
  HttpResponse upload(const HttpRequest& request) const;
  HttpResponse exec(const HttpRequest& request);
  static HttpResponse attach(const HttpRequest& request);

  fs::path folder_;
  PosixHost host_{};
  mutable std::mutex mutex_;
  std::map<std::string, std::string> vms_{};  // vm_id -> url
  std::vector<std::string> lines_{};
  std::vector<std::string> creates_{};
};

}  // namespace fuse
