#pragma once

#include <string>
#include <string_view>

#include "guest/channel/client.h"
#include "tests/catch.h"

namespace fuse {

struct Ended {
  JobStatus status{};
  std::string log{};
};

// Follows the log to its end, which is the job's.
inline Ended follow(GuestClient& client) {
  Ended out;
  const auto range = client.read_log({.follow = true}, [&out](std::string_view bytes) {
    out.log += bytes;
    return true;
  });
  REQUIRE(range);
  CHECK(range->begin == 0);
  CHECK(range->end == out.log.size());
  const auto job = client.job_status();
  REQUIRE(job);
  out.status = job->status;
  CHECK(out.status.log_bytes == out.log.size());
  return out;
}

inline Ended run(GuestClient& client, const JobSpec& spec) {
  REQUIRE(client.start_job("key", spec));
  return follow(client);
}

// Reads the log until it contains the text.
inline void await_in_log(GuestClient& client, std::string_view text) {
  std::string log;
  REQUIRE(client.read_log({.follow = true}, [&](std::string_view bytes) {
    log += bytes;
    return log.find(text) == std::string::npos;
  }));
  REQUIRE(log.find(text) != std::string::npos);
}

}  // namespace fuse
