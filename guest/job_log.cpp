#include "guest/job_log.h"

#include <algorithm>
#include <string>

#include "base/text.h"

namespace fuse {

namespace {

constexpr std::size_t most_at_once = 64U << 10U;

class JobLog final : public StreamHandler {
 public:
  JobLog(Job& job, ServerStream& stream, const GuestLogQuery& query)
      : job_(job),
        stream_(stream),
        query_(query),
        begin_(std::max(query.offset, job.log()->begin())),
        at_(begin_),
        end_(job.log()->end()),
        listener_(job.listen([this] { pump(); })) {}
  JobLog(const JobLog&) = delete;
  JobLog& operator=(const JobLog&) = delete;
  ~JobLog() override { job_.forget(listener_); }

  void start() {
    stream_.send(pipe_out, u64_payload(begin_));
    if (query_.acknowledge) job_.acknowledge(begin_);
    pump();
  }

  void on_data(std::uint8_t /*pipe*/, std::string_view bytes, bool /*end*/) override {
    stream_.grant(bytes.size());
    acknowledgement_ += bytes;
    while (acknowledgement_.size() >= sizeof(std::uint64_t)) {
      const auto offset = parse_u64_payload(acknowledgement_.substr(0, sizeof(std::uint64_t)));
      acknowledgement_.erase(0, sizeof(std::uint64_t));
      // Only what was sent can have arrived.
      if (offset && query_.acknowledge) job_.acknowledge(std::min(*offset, at_));
    }
  }

  void on_credit() override { pump(); }

 private:
  void pump() {
    Spool& log = *job_.log();
    if (query_.follow) end_ = log.end();
    while (at_ < end_ && stream_.credit() > 0) {
      if (at_ < log.begin()) {
        return stream_.fail({ErrorCode::conflict,
                             cat("the log before byte ", log.begin(), " was taken meanwhile")});
      }
      const std::size_t most = std::min<std::uint64_t>(
          {std::uint64_t{most_at_once}, std::uint64_t{stream_.credit()}, end_ - at_});
      const auto bytes = log.read(at_, most);
      if (!bytes) return stream_.fail(bytes.error());
      stream_.send(pipe_out, *bytes);
      at_ += bytes->size();
    }
    if (at_ == end_ && (!query_.follow || job_.has_ended())) {
      stream_.close(log_range_text({.begin = begin_, .end = at_}));
    }
  }

  Job& job_;
  ServerStream& stream_;
  GuestLogQuery query_;
  std::uint64_t begin_;
  std::uint64_t at_;
  std::uint64_t end_;
  int listener_;
  std::string acknowledgement_{};
};

}  // namespace

std::unique_ptr<StreamHandler> start_job_log(Job& job, ServerStream& stream,
                                             const GuestLogQuery& query) {
  if (job.log() == nullptr) {
    stream.fail({ErrorCode::not_found, "this guest has had no job"});
    return nullptr;
  }
  if (query.offset > job.log()->end()) {
    stream.fail({ErrorCode::invalid_argument, cat("offset ", query.offset, " is beyond the log's ",
                                                  job.log()->end(), " bytes")});
    return nullptr;
  }
  auto log = std::make_unique<JobLog>(job, stream, query);
  log->start();
  return log;
}

}  // namespace fuse
