#include "hostmode/metrics.h"

#include <cstdio>
#include <vector>

#include "base/text.h"

namespace fuse {

namespace {

constexpr std::string_view prefix = "fuse_agent_";

std::string number(double value) {
  std::array<char, 32> text{};
  const int size = std::snprintf(text.data(), text.size(), "%.6g", value);
  return {text.data(), static_cast<std::size_t>(size)};
}

std::string heading(std::string_view name, std::string_view help, std::string_view type) {
  return cat("# HELP ", prefix, name, " ", help, "\n# TYPE ", prefix, name, " ", type, "\n");
}

}  // namespace

std::string metric_label(std::string_view name, std::string_view value) {
  std::string out = cat(name, "=\"");
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

void AgentMetrics::note_request(std::string_view route, std::string_view method, int status,
                                Seconds time) {
  const std::scoped_lock lock(mutex_);
  Series& series = requests_[{std::string(route), std::string(method), status}];
  ++series.count;
  series.seconds += time.count();
}

void AgentMetrics::note_create(bool made, Seconds time) {
  const std::scoped_lock lock(mutex_);
  ++creates_[made];
  if (!made) return;
  ++create_sum_.count;
  create_sum_.seconds += time.count();
  for (std::size_t i = 0; i < create_ends.size(); ++i) {
    if (time.count() <= create_ends[i]) ++create_times_[i];
  }
}

void AgentMetrics::print_requests(std::string& out) const {
  const auto labels = [](const auto& key) {
    const auto& [route, method, code] = key;
    return cat("{", metric_label("route", route), ",", metric_label("method", method), ",",
               metric_label("code", std::to_string(code)), "}");
  };
  out += heading("http_requests_total", "Requests answered.", "counter");
  for (const auto& [key, series] : requests_) {
    out += cat(prefix, "http_requests_total", labels(key), " ", series.count, "\n");
  }
  out += heading("http_request_seconds_total", "Time until the answers began.", "counter");
  for (const auto& [key, series] : requests_) {
    out +=
        cat(prefix, "http_request_seconds_total", labels(key), " ", number(series.seconds), "\n");
  }
}

void AgentMetrics::print_creates(std::string& out) const {
  out += heading("creates_total", "Creates that came to an end.", "counter");
  for (const auto& [made, count] : creates_) {
    out += cat(prefix, "creates_total{", metric_label("outcome", made ? "made" : "failed"), "} ",
               count, "\n");
  }
  const std::string name = "create_duration_seconds";
  out += heading(name, "From the request for a virtual machine to its guest's hello.", "histogram");
  for (std::size_t i = 0; i < create_ends.size(); ++i) {
    out += cat(prefix, name, "_bucket{", metric_label("le", std::to_string(create_ends[i])), "} ",
               create_times_[i], "\n");
  }
  out += cat(prefix, name, "_bucket{", metric_label("le", "+Inf"), "} ", create_sum_.count, "\n");
  out += cat(prefix, name, "_sum ", number(create_sum_.seconds), "\n");
  out += cat(prefix, name, "_count ", create_sum_.count, "\n");
}

std::string AgentMetrics::text(const std::vector<Gauge>& now) const {
  std::string out;
  for (const Gauge& gauge : now) {
    out += heading(gauge.name, gauge.help, "gauge");
    for (const auto& [labels, value] : gauge.values) {
      out += cat(prefix, gauge.name, "{", labels, "} ", value, "\n");
    }
  }
  const std::scoped_lock lock(mutex_);
  print_creates(out);
  print_requests(out);
  return out;
}

}  // namespace fuse
