#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/locked.h"
#include "orchestrator/host_directory.h"
#include "orchestrator/scheduler.h"
#include "orchestrator/store.h"

namespace fuse {

// The fleet in memory.  A look asks the database for the hosts' versions only,
// and reads again what has changed.  Safe from several threads, which take turns.
class FleetView {
 public:
  FleetView(Store& store, const HostDirectory& directory, const Clock& clock)
      : store_(store), directory_(directory), clock_(clock) {}

  // How far behind the database a look may be.
  enum class Look {
    fresh,   // not at all
    recent,  // up to a second, for decisions that the database checks once more
  };
  // What `body`, which takes a Fleet, makes of it.
  template <class F>
  auto use(Look look, F&& body) -> Result<decltype(body(std::declval<const Fleet&>()))> {
    return known_.with([&](Known& known) -> Result<decltype(body(known.fleet))> {
      if (auto done = bring_up_to_date(known, look); !done) return done.error();
      return std::forward<F>(body)(std::as_const(known.fleet));
    });
  }

  // That the next look has to read this host again, however recent it may be.
  void note_change(const std::string& host_id);

 private:
  struct Known {
    Fleet fleet{};
    std::set<std::string> changed{};
    std::optional<SteadyTime> looked{};  // at every host
  };
  struct News;
  Result<void> bring_up_to_date(Known& known, Look look);
  Result<News> read_news(const Fleet& fleet);
  enum class Found { all, not_all };
  Result<Found> read_changed(Known& known);
  void set_seen(FleetHost& host, WallTime seen) const;

  Store& store_;
  const HostDirectory& directory_;
  const Clock& clock_;
  Locked<Known> known_;
};

}  // namespace fuse
