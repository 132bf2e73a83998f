#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"

namespace fuse {

// How many of what there is now, by its labels.
struct Gauge {
  std::string name{};  // without the prefix
  std::string help{};
  std::map<std::string, std::uint64_t> values{};  // labels as they are printed -> value
};

// What the agent counts from its start on.  Safe from several threads.
class AgentMetrics {
 public:
  using Seconds = std::chrono::duration<double>;

  // An answer: `route` is the pattern, so that ids make no series.
  void note_request(std::string_view route, std::string_view method, int status, Seconds time);
  // A create that came to its end.
  void note_create(bool made, Seconds time);

  // Everything in Prometheus' text format, with `now` in front.
  [[nodiscard]] std::string text(const std::vector<Gauge>& now) const;

 private:
  struct Series {
    std::uint64_t count = 0;
    double seconds = 0;
  };
  // Upper ends in seconds; what takes longer is only in the count.
  static constexpr std::array<int, 9> create_ends = {1, 2, 5, 10, 30, 60, 120, 300, 600};

  void print_requests(std::string& out) const;  // by mutex_
  void print_creates(std::string& out) const;   // by mutex_

  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, std::string, int>, Series> requests_{};
  std::map<bool, std::uint64_t> creates_{{false, 0}, {true, 0}};
  std::array<std::uint64_t, create_ends.size()> create_times_{};
  Series create_sum_{};
};

// A label as it is printed: NAME="VALUE" with the value escaped.
std::string metric_label(std::string_view name, std::string_view value);

}  // namespace fuse
