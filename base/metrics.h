#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/locked.h"

namespace fuse {

enum class MetricKind { counter, gauge, histogram };

struct MetricInfo {
  std::string name{};
  MetricKind kind = MetricKind::counter;
  std::string help{};
};

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// Numbers about a service, in Prometheus' text format 0.0.4.  Only what is listed
// when it is made can be counted; a counter or gauge without labels is there from
// the start.  Safe from several threads.
class Metrics {
 public:
  explicit Metrics(std::vector<MetricInfo> known);

  void add(std::string_view counter, const MetricLabels& labels = {}, double by = 1);
  void set(std::string_view gauge, const MetricLabels& labels, double value);
  void change(std::string_view gauge, double by);  // the one without labels
  // Forgets every value of a gauge, before it is set anew.
  void clear(std::string_view gauge);
  // One duration, in seconds.
  void observe(std::string_view histogram, const MetricLabels& labels, double seconds);

  [[nodiscard]] std::string text() const;

 private:
  struct Histogram {
    std::vector<std::uint64_t> buckets{};  // at most the bound of each
    std::uint64_t count = 0;
    double sum = 0;
  };
  struct Family {
    MetricInfo info{};
    std::map<std::string, double> values{};         // by the labels as they are printed
    std::map<std::string, Histogram> histograms{};  // likewise
  };
  using Families = std::map<std::string, Family, std::less<>>;
  static Family& family_in(Families& families, std::string_view name, MetricKind kind);
  Locked<Families> families_;
};

}  // namespace fuse
