#include "net/attach_session.h"

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/text.h"
#include "net/attach_frames.h"

namespace fuse {

namespace {

// How long a client may take to close after it got the exit frame.
constexpr std::chrono::seconds longest_goodbye{2};

class FramedSession final : public AttachSession {
 public:
  explicit FramedSession(std::unique_ptr<ByteStream> connection)
      : connection_(std::move(connection)) {}

  Result<std::optional<AttachFrame>> read() override {
    std::array<char, 16384> buffer{};
    while (true) {
      auto frame = decoder_.next();
      if (!frame || *frame) return frame;
      const auto got = connection_->read(buffer, std::nullopt);
      if (!got) return got.error();
      if (got->kind == ReadOutcome::Kind::end) return std::optional<AttachFrame>();
      decoder_.feed({buffer.data(), got->size});
    }
  }

  Result<void> write(const AttachFrame& frame) override {
    // Resizes come from another thread than the input.
    const std::scoped_lock lock(writing_);
    return connection_->write(encode_attach_frame(frame));
  }

  void close() override { connection_->close(); }

 private:
  std::unique_ptr<ByteStream> connection_;
  AttachDecoder decoder_;
  std::mutex writing_;
};

// From the client to the session, until either is gone.
void carry_input(ByteStream& client, AttachSession& session) {
  AttachDecoder decoder;
  std::array<char, 16384> buffer{};
  while (true) {
    const auto got = client.read(buffer, std::nullopt);
    if (!got || got->kind != ReadOutcome::Kind::bytes) return;
    decoder.feed({buffer.data(), got->size});
    while (true) {
      const auto frame = decoder.next();
      if (!frame) return;
      if (!*frame) break;
      // A session that is over takes nothing; its own reader says so.
      (void)session.write(**frame);
    }
  }
}

void carry_output(AttachSession& session, ByteStream& client) {
  while (true) {
    const auto frame = session.read();
    if (!frame || !*frame) return;
    if (!client.write(encode_attach_frame(**frame))) return;
    if ((*frame)->type == AttachFrameType::exit) return;
  }
}

std::int32_t dimension(const std::optional<std::string>& text) {
  const auto value = parse_int(text.value_or(""));
  return value && *value >= 1 && *value <= 65535 ? static_cast<std::int32_t>(*value) : 0;
}

}  // namespace

std::unique_ptr<AttachSession> make_attach_session(std::unique_ptr<ByteStream> connection) {
  return std::make_unique<FramedSession>(std::move(connection));
}

void serve_attach(ByteStream& client, AttachSession& session) {
  std::mutex mutex;
  std::condition_variable changed;
  bool client_gone = false;
  std::thread input([&] {
    carry_input(client, session);
    session.close();
    const std::scoped_lock lock(mutex);
    client_gone = true;
    changed.notify_all();
  });
  carry_output(session, client);
  // Closing at once, with input unread, would reset the connection and could take
  // the exit frame with it.
  client.shutdown_write();
  {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, longest_goodbye, [&] { return client_gone; });
  }
  client.close();
  input.join();
}

HttpResponse attach_response(std::unique_ptr<AttachSession> session) {
  HttpResponse response;
  response.status = 101;
  response.upgrade = {.protocol = std::string(attach_protocol),
                      .run = [session = std::shared_ptr<AttachSession>(std::move(session))](
                                 ByteStream& client) { serve_attach(client, *session); }};
  return response;
}

Query attach_query(const AttachRequest& request) {
  Query query;
  query.add("tty", request.tty ? "1" : "0");
  if (request.rows > 0) query.add("rows", std::to_string(request.rows));
  if (request.cols > 0) query.add("cols", std::to_string(request.cols));
  for (const std::string& argument : request.cmd) query.add("cmd", argument);
  return query;
}

AttachRequest parse_attach_query(const Query& query) {
  AttachRequest request;
  const std::string tty = query.get("tty").value_or("");
  request.tty = tty == "1" || equal_ignoring_case(tty, "true");
  request.rows = dimension(query.get("rows"));
  request.cols = dimension(query.get("cols"));
  request.cmd = query.all("cmd");
  return request;
}

}  // namespace fuse
