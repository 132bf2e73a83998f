#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_client.h"
#include "orchestrator/api/streams.h"

namespace fuse {

// A job may be silent for hours; a connection that is silent is asked anew.
inline constexpr std::chrono::milliseconds silent_log = std::chrono::seconds(60);

// A log put together from the answers of several connections.
class LogReader {
 public:
  // `route` is the log's, without a query.
  LogReader(std::string route, const LogQuery& query, const ByteSink& sink)
      : route_(std::move(route)), query_(query), sink_(sink) {}

  // What is asked next: the rest.
  [[nodiscard]] std::string target() const;
  // Hands bytes on; false when no more are wanted.
  bool take(std::string_view bytes);
  // Enters what came with an answer that has this head; how much it was.
  std::uint64_t settle(const HttpReply& head);
  // The bytes that the last answer left out, since they are not kept any more.
  [[nodiscard]] LogRange hole() const { return hole_; }
  [[nodiscard]] bool follows() const { return query_.follow; }
  [[nodiscard]] bool refused() const { return refused_; }
  // The offset of the byte that is asked for next.
  [[nodiscard]] std::uint64_t next() const { return range_ ? range_->end : query_.offset; }
  [[nodiscard]] LogRange range() const { return range_.value_or(LogRange{}); }

 private:
  std::string route_;
  const LogQuery& query_;
  const ByteSink& sink_;
  std::optional<LogRange> range_{};
  LogRange hole_{};
  std::uint64_t received_ = 0;
  bool refused_ = false;
};

}  // namespace fuse
