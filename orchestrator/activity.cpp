#include "orchestrator/activity.h"

#include <iterator>
#include <utility>

namespace fuse {

class Activity::Followed final : public AttachSession {
 public:
  Followed(Activity& activity, std::string uid, std::unique_ptr<AttachSession> inner)
      : activity_(activity), uid_(std::move(uid)), inner_(std::move(inner)) {
    activity_.entries_.with([&](auto& entries) { ++entries[uid_].open; });
  }
  ~Followed() override {
    activity_.entries_.with([&](auto& entries) {
      Entry& entry = entries[uid_];
      --entry.open;
      entry.last = activity_.clock_.steady();
      entry.news = true;
    });
  }
  Followed(const Followed&) = delete;
  Followed& operator=(const Followed&) = delete;

  Result<std::optional<AttachFrame>> read() override { return inner_->read(); }
  Result<void> write(const AttachFrame& frame) override { return inner_->write(frame); }
  void close() override { inner_->close(); }

 private:
  Activity& activity_;
  std::string uid_;
  std::unique_ptr<AttachSession> inner_;
};

void Activity::note(const std::string& uid) {
  entries_.with([&](auto& entries) {
    Entry& entry = entries[uid];
    entry.last = clock_.steady();
    entry.news = true;
  });
}

std::unique_ptr<AttachSession> Activity::follow(const std::string& uid,
                                                std::unique_ptr<AttachSession> session) {
  return std::make_unique<Followed>(*this, uid, std::move(session));
}

std::chrono::nanoseconds Activity::idle(const std::string& uid) const {
  const SteadyTime now = clock_.steady();
  return entries_.with([&](const auto& entries) -> std::chrono::nanoseconds {
    const auto found = entries.find(uid);
    if (found == entries.end()) return now - since_;
    return found->second.open > 0 ? std::chrono::nanoseconds(0) : now - found->second.last;
  });
}

std::vector<std::string> Activity::take_news() {
  std::vector<std::string> out;
  entries_.with([&](auto& entries) {
    for (auto at = entries.begin(); at != entries.end();) {
      Entry& entry = at->second;
      const bool news = std::exchange(entry.news, false) || entry.open > 0;
      if (news) out.push_back(at->first);
      at = news ? std::next(at) : entries.erase(at);
    }
  });
  return out;
}

}  // namespace fuse
