#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/host.h"
#include "cmd/local_paths.h"
#include "net/http_client.h"

namespace fuse::cmd {

// What the background process says of itself.
struct DaemonInfo {
  std::int64_t pid = 0;
  std::string version{};
  std::string build_id{};
  std::string started_at{};
};

struct LocalClientOptions {
  LocalPaths paths{};
  // What starts the background process: this program.
  std::vector<std::string> program = {"/proc/self/exe"};
  std::vector<std::string> environment{};  // of the background process, "K=V"
  std::string build_id{};                  // ours
  // How long one that starts or stops is waited for, and from when on the user is
  // told: a step of its work may take as long as the boot of a VM.
  std::chrono::milliseconds patience{std::chrono::minutes(5)};
  std::chrono::milliseconds silence{std::chrono::seconds(10)};
};

// Which background process will do.
enum class AcceptBuild {
  same,  // one of another build hands over to a new one
  any,
};

// A client's view of this user's background process.  Safe from several threads.
class LocalClient {
 public:
  // `say` takes what the user should know, a line at a time.
  LocalClient(LocalClientOptions options, Host& host, Clock& clock,
              std::function<void(const std::string& line)> say);

  // The one that runs; nothing when none does.
  Result<std::optional<DaemonInfo>> look();
  // Starts it unless it runs and waits until it answers.  When it does not
  // start, the error holds the end of its log.
  Result<DaemonInfo> ensure(AcceptBuild accept);
  // Asks it to stop and waits until it has; what it was, or nothing when none
  // ran.  VMs go on.
  Result<std::optional<DaemonInfo>> stop();

  // Files of guest images that VMs use.  Starts the process when there are VMs
  // that only it can ask.
  Result<std::set<fs::path>> images_in_use();

  [[nodiscard]] Result<std::unique_ptr<HttpClient>> http() const;

 private:
  // A start in progress: the process and where its part of the log begins.
  struct Start {
    std::unique_ptr<Process> process{};
    std::uintmax_t log_begin = 0;
  };
  Result<DaemonInfo> find_or_start(AcceptBuild accept);
  Result<Start> spawn();
  [[nodiscard]] Error did_not_start(const Start& start, const std::string& why) const;
  // Error when it ended with a failure; forgets one that lost the race.
  Result<void> look_after(Start& start);
  // One round of waiting for it: starts it, also again, while nobody answers.
  Result<void> keep_starting(Start& start);
  [[nodiscard]] Error no_answer(Start& start) const;
  Result<void> ask_to_stop();
  void announce(Start& start, const DaemonInfo& info);
  // Asks one of another build to make way, and says so.
  Result<void> hand_over(const DaemonInfo& info);

  LocalClientOptions options_;
  Host& host_;
  Clock& clock_;
  std::function<void(const std::string& line)> say_;
  std::mutex mutex_{};  // one start at a time
  // One that we started, to reap when it ends before us.
  std::unique_ptr<Process> started_{};
};

}  // namespace fuse::cmd
