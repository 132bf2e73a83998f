#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "cmd/copy_place.h"
#include "cmd/guest_command.h"
#include "orchestrator/api/environment_api.h"

namespace fuse::cmd {

// What there is at a path of a guest.
struct GuestFile {
  CopyKind kind = CopyKind::none;
  std::uint32_t mode = 0;  // of a file
};

// The files of one environment, by means of the sh, cat, stat and tar that any guest
// has.  Errors name the path as ID:/PATH.
class GuestFiles {
 public:
  GuestFiles(EnvironmentApi& api, std::string id, std::stop_token stop)
      : api_(api), id_(std::move(id)), stop_(std::move(stop)) {}

  // Symbolic links are followed.
  Result<GuestFile> look_at(const std::string& path);
  // The bytes of a file.
  Result<void> read(const std::string& path, const ByteSink& sink);
  // What is in a folder, as an archive.  Its answer says what went wrong on the way
  // that does no harm, such as a file that grew.
  Result<std::string> read_tree(const std::string& path, const ByteSink& sink);
  // Puts a file in place once all of it is there.
  Result<void> write(const std::string& path, std::uint32_t mode, const GuestInput& input);
  // Unpacks an archive into a folder, which is made.
  Result<void> write_tree(const std::string& path, const GuestInput& archive);

 private:
  Result<GuestCommandEnd> run(std::vector<std::string> argv, const GuestInput& input,
                              const ByteSink& output);
  [[nodiscard]] Error failed(std::string_view what, const std::string& path,
                             const GuestCommandEnd& end) const;

  EnvironmentApi& api_;
  std::string id_;
  std::stop_token stop_;
};

// Whether all that tar complained of are files that were changed or removed while it
// read them, which is no failure of a copy of something that lives.
bool is_only_news(std::string_view complaint);

}  // namespace fuse::cmd
