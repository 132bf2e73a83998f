#include "base/metrics.h"

#include <array>
#include <cassert>
#include <charconv>

#include "base/text.h"

namespace fuse {

namespace {

// From a short call to a long boot, in seconds.
constexpr std::array bounds = {0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0};

std::string_view to_string(MetricKind kind) {
  switch (kind) {
    case MetricKind::counter:
      return "counter";
    case MetricKind::gauge:
      return "gauge";
    case MetricKind::histogram:
      return "histogram";
  }
  return "untyped";
}

std::string number(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

// a="x",b="y"
std::string printed(const MetricLabels& labels) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : labels) parts.push_back(cat(name, "=\"", escaped(value), '"'));
  return join(parts, ",");
}

std::string braced(const std::string& labels) {
  return labels.empty() ? std::string() : cat('{', labels, '}');
}

}  // namespace

Metrics::Metrics(std::vector<MetricInfo> known) {
  families_.with([&](Families& families) {
    for (MetricInfo& info : known) {
      Family& family = families[info.name];
      if (info.kind == MetricKind::counter) family.values.emplace("", 0);
      family.info = std::move(info);
    }
  });
}

Metrics::Family& Metrics::family_in(Families& families, std::string_view name, MetricKind kind) {
  const auto found = families.find(name);
  assert(found != families.end() && found->second.info.kind == kind);
  (void)kind;
  return found->second;
}

void Metrics::add(std::string_view counter, const MetricLabels& labels, double by) {
  families_.with([&](Families& families) {
    Family& family = family_in(families, counter, MetricKind::counter);
    if (!labels.empty()) family.values.erase("");
    family.values[printed(labels)] += by;
  });
}

void Metrics::set(std::string_view gauge, const MetricLabels& labels, double value) {
  families_.with([&](Families& families) {
    family_in(families, gauge, MetricKind::gauge).values[printed(labels)] = value;
  });
}

void Metrics::change(std::string_view gauge, double by) {
  families_.with(
      [&](Families& families) { family_in(families, gauge, MetricKind::gauge).values[""] += by; });
}

void Metrics::clear(std::string_view gauge) {
  families_.with(
      [&](Families& families) { family_in(families, gauge, MetricKind::gauge).values.clear(); });
}

void Metrics::observe(std::string_view histogram, const MetricLabels& labels, double seconds) {
  families_.with([&](Families& families) {
    Family& family = family_in(families, histogram, MetricKind::histogram);
    Histogram& one = family.histograms[printed(labels)];
    one.buckets.resize(bounds.size());
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      if (seconds <= bounds.at(i)) ++one.buckets[i];
    }
    ++one.count;
    one.sum += seconds;
  });
}

std::string Metrics::text() const {
  std::string out;
  families_.with([&](const Families& families) {
    for (const auto& [name, family] : families) {
      out += cat("# HELP ", name, ' ', family.info.help, "\n# TYPE ", name, ' ',
                 to_string(family.info.kind), '\n');
      for (const auto& [labels, value] : family.values) {
        out += cat(name, braced(labels), ' ', number(value), '\n');
      }
      for (const auto& [labels, one] : family.histograms) {
        const std::string lead = labels.empty() ? std::string() : cat(labels, ",");
        for (std::size_t i = 0; i < bounds.size(); ++i) {
          out += cat(name, "_bucket{", lead, "le=\"", number(bounds.at(i)), "\"} ", one.buckets[i],
                     '\n');
        }
        out += cat(name, "_bucket{", lead, "le=\"+Inf\"} ", one.count, '\n', name, "_sum",
                   braced(labels), ' ', number(one.sum), '\n', name, "_count", braced(labels), ' ',
                   one.count, '\n');
      }
    }
  });
  return out;
}

}  // namespace fuse
