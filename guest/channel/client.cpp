#include "guest/channel/client.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/text.h"
#include "guest/channel/attach_stream.h"
#include "guest/channel/host_link.h"

namespace fuse {

namespace {

// What to do with a data frame; false cancels the operation.
using FrameSink = std::function<bool(HostStream& stream, Frame frame)>;

// Runs one operation to its end: sends `input`, hands on what comes, and returns
// the text of its result, or nothing when the sink had enough.
Result<std::optional<std::string>> run_operation(std::shared_ptr<HostLink> link,
                                                 const Operation& operation,
                                                 std::optional<std::string_view> input,
                                                 const FrameSink& sink, std::stop_token stop) {
  auto stream = HostStream::open(std::move(link), operation);
  if (!stream) return stream.error();
  std::string_view rest = input.value_or(std::string_view());
  bool unsent = true;
  while (true) {
    if (unsent) unsent = stream->send(pipe_in, rest, input.has_value()) == HostStream::Sent::some;
    const auto want = unsent ? HostStream::Want::either : HostStream::Want::frame;
    if (auto ready = stream->wait(want, stop); !ready) return ready.error();
    while (auto frame = stream->read()) {
      if (!sink(*stream, *std::move(frame))) return std::optional<std::string>();
    }
    if (auto result = stream->result()) {
      if (!*result) return result->error();
      return std::optional<std::string>(**result);
    }
  }
}

bool ignore(HostStream& /*stream*/, const Frame& /*frame*/) {
  return true;
}

Result<std::string> simple_operation(std::shared_ptr<HostLink> link, const Operation& operation,
                                     std::stop_token stop) {
  auto text = run_operation(std::move(link), operation, std::nullopt, ignore, std::move(stop));
  if (!text) return text.error();
  return text->value_or(std::string());
}

Result<void> done(const Result<std::string>& text) {
  if (!text) return text.error();
  return {};
}

// Keeps at most so many bytes of each of a command's outputs.
class OutputKeeper {
 public:
  OutputKeeper(std::size_t most, GuestExecResult& into) : most_(most), into_(into) {}
  void take(const Frame& frame) {
    std::string& kept = (frame.flags & pipe_mask) == pipe_err ? into_.err : into_.out;
    const std::size_t room = most_ - std::min(most_, kept.size());
    if (frame.payload.size() > room) truncated_ = true;
    kept.append(frame.payload, 0, room);
  }
  [[nodiscard]] bool truncated() const { return truncated_; }

 private:
  std::size_t most_;
  GuestExecResult& into_;
  bool truncated_ = false;
};

// Hands a log's bytes on and tells the guest which are safe.
class LogReader {
 public:
  LogReader(const GuestLogQuery& query, const ByteSink& sink) : query_(query), sink_(sink) {}

  bool take(HostStream& stream, const Frame& frame) {
    std::string_view bytes = frame.payload;
    if (!range_ && !take_begin(bytes)) return true;
    if (bytes.empty()) return true;
    range_->end += bytes.size();
    const bool more = sink_(bytes);
    if (more && query_.acknowledge) acknowledge(stream);
    return more;
  }
  [[nodiscard]] LogRange range() const {
    return range_.value_or(LogRange{.begin = query_.offset, .end = query_.offset});
  }

 private:
  // The first eight bytes say where the log begins.
  bool take_begin(std::string_view& bytes) {
    const std::size_t size = std::min(bytes.size(), std::size_t{8} - head_.size());
    head_ += bytes.substr(0, size);
    bytes.remove_prefix(size);
    const auto begin = parse_u64_payload(head_);
    if (!begin) return false;
    range_ = LogRange{.begin = *begin, .end = *begin};
    return true;
  }
  // A small message that is not sent for want of credit is contained in the next.
  void acknowledge(HostStream& stream) {
    unsent_ += unsent_.empty() ? u64_payload(range_->end) : "";
    std::string_view rest = unsent_;
    (void)stream.send(pipe_in, rest, false);
    unsent_.erase(0, unsent_.size() - rest.size());
  }

  const GuestLogQuery& query_;
  const ByteSink& sink_;
  std::string head_{};
  std::string unsent_{};
  std::optional<LogRange> range_{};
};

}  // namespace

GuestClient::GuestClient(std::shared_ptr<HostLink> link) : link_(std::move(link)) {}

GuestClient::~GuestClient() {
  close();
}

Result<std::unique_ptr<GuestClient>> GuestClient::connect(Fd socket, const GuestLimits& limits,
                                                          std::stop_token stop) {
  auto link = HostLink::connect(std::move(socket), limits, std::move(stop));
  if (!link) return link.error();
  return std::unique_ptr<GuestClient>(new GuestClient(*std::move(link)));
}

const GuestHello& GuestClient::hello() const {
  return link_->hello();
}

bool GuestClient::alive() const {
  return link_->alive();
}

void GuestClient::close() {
  link_->close();
}

Result<GuestExecResult> GuestClient::exec(const GuestExec& command, std::stop_token stop) {
  GuestExecResult output;
  OutputKeeper keeper(command.most_output, output);
  const FrameSink keep = [&keeper](HostStream& /*stream*/, const Frame& frame) {
    keeper.take(frame);
    return true;
  };
  std::optional<std::string_view> input;
  if (!command.input.empty()) input = command.input;
  const auto text =
      run_operation(link_, ExecOperation{.command = command, .has_input = input.has_value()}, input,
                    keep, std::move(stop));
  if (!text) return text.error();
  auto result = parse_guest_exec_result(text->value_or(std::string()));
  if (!result) return result.error();
  result->truncated = keeper.truncated();
  result->out = std::move(output.out);
  result->err = std::move(output.err);
  return result;
}

Result<void> GuestClient::upload(const UploadFile& file, std::stop_token stop) {
  const auto text = run_operation(link_, UploadOperation{.path = file.path, .mode = file.mode},
                                  std::string_view(file.bytes), ignore, std::move(stop));
  if (!text) return text.error();
  return {};
}

Result<std::unique_ptr<AttachSession>> GuestClient::open_attach(
    const AttachRequest& request, const std::map<std::string, std::string>& env) {
  auto stream = HostStream::open(link_, AttachOperation{.request = request, .env = env});
  if (!stream) return stream.error();
  std::string_view nothing;
  while (stream->send(pipe_in, nothing, false) == HostStream::Sent::some && !stream->ended()) {
    if (auto ready = stream->wait(HostStream::Want::credit, {}); !ready) return ready.error();
  }
  return make_attach_session(*std::move(stream));
}

Result<void> GuestClient::begin(std::stop_token stop) {
  return done(simple_operation(link_, BeginOperation{}, std::move(stop)));
}

Result<void> GuestClient::start_job(const std::string& key, const JobSpec& job,
                                    std::stop_token stop) {
  return done(simple_operation(link_, JobStartOperation{.key = key, .spec = job}, std::move(stop)));
}

Result<GuestJob> GuestClient::job_status(std::stop_token stop) {
  const auto text = simple_operation(link_, JobStatusOperation{}, std::move(stop));
  if (!text) return text.error();
  return parse_guest_job(*text);
}

Result<LogRange> GuestClient::read_log(const GuestLogQuery& query, const ByteSink& sink,
                                       std::stop_token stop) {
  LogReader reader(query, sink);
  const FrameSink take = [&reader](HostStream& stream, const Frame& frame) {
    return reader.take(stream, frame);
  };
  const auto text =
      run_operation(link_, JobLogOperation{.query = query}, std::nullopt, take, std::move(stop));
  if (!text) return text.error();
  return reader.range();
}

Result<void> GuestClient::stop_job(std::chrono::seconds grace, std::stop_token stop) {
  return done(
      simple_operation(link_, JobStopOperation{.grace_seconds = grace.count()}, std::move(stop)));
}

Result<void> GuestClient::set_clock(WallTime now, std::stop_token stop) {
  return done(simple_operation(link_, ClockOperation{.now = now}, std::move(stop)));
}

Result<void> GuestClient::shutdown(std::stop_token stop) {
  return done(simple_operation(link_, ShutdownOperation{}, std::move(stop)));
}

}  // namespace fuse
