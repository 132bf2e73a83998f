#include "net/attach_session.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "net/attach_frames.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "tests/catch.h"
#include "tests/net/wire.h"

namespace fuse {
namespace {

// A process in a guest: says back what it reads, ends at "exit N".
class EchoSession final : public AttachSession {
 public:
  Result<std::optional<AttachFrame>> read() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !out_.empty(); });
    if (out_.empty()) return std::optional<AttachFrame>();
    AttachFrame frame = std::move(out_.front());
    out_.pop_front();
    return std::optional(std::move(frame));
  }
  Result<void> write(const AttachFrame& frame) override {
    const std::scoped_lock lock(mutex_);
    if (frame.payload.starts_with("exit ")) {
      out_.push_back({AttachFrameType::exit, encode_exit(std::stoi(frame.payload.substr(5)))});
    } else {
      out_.push_back({frame.type == AttachFrameType::resize ? AttachFrameType::stderr_bytes
                                                            : AttachFrameType::stdout_bytes,
                      frame.payload});
    }
    changed_.notify_all();
    return {};
  }
  void close() override {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  bool closed() const {
    const std::scoped_lock lock(mutex_);
    return closed_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<AttachFrame> out_{};
  bool closed_ = false;
};

// A session served at one end of a connection.
struct Served {
  std::unique_ptr<ByteStream> client{};
  std::unique_ptr<ByteStream> server{};
  EchoSession session{};
  std::thread thread{};

  Served() {
    auto pair = make_stream_pair();
    REQUIRE(pair);
    client = std::move(pair->first);
    server = std::move(pair->second);
    thread = std::thread([this] { serve_attach(*server, session); });
  }
  ~Served() {
    if (thread.joinable()) thread.join();
  }
};

TEST_CASE("frames go both ways until the exit, which is the last") {
  Served served;
  const auto session = make_attach_session(std::move(served.client));
  REQUIRE(session->write({AttachFrameType::stdin_bytes, "hello"}));
  REQUIRE(session->write({AttachFrameType::resize, encode_resize({24, 80})}));
  REQUIRE(session->write({AttachFrameType::stdin_bytes, "exit 7"}));
  REQUIRE(session->write({AttachFrameType::stdin_bytes, "too late"}));

  const auto hello = session->read();
  REQUIRE(hello);
  REQUIRE(*hello);
  CHECK((*hello)->payload == "hello");
  CHECK((**session->read()).type == AttachFrameType::stderr_bytes);
  const auto exit = **session->read();
  CHECK(exit.type == AttachFrameType::exit);
  CHECK(parse_exit(exit.payload) == 7);
  const auto over = session->read();
  REQUIRE(over);
  CHECK_FALSE(*over);
  session->close();
}

TEST_CASE("a client that goes away closes the session") {
  Served served;
  served.client->close();
  served.thread.join();
  CHECK(served.session.closed());
}

TEST_CASE("a client that goes away in the middle of a frame closes the session") {
  Served served;
  REQUIRE(served.client->write(
      encode_attach_frame({AttachFrameType::stdin_bytes, "abc"}).substr(0, 9)));
  served.client->close();
  served.thread.join();
  CHECK(served.session.closed());
}

TEST_CASE("a frame that claims too much closes the session") {
  Served served;
  REQUIRE(served.client->write(std::string("\0\0\0\0\x7F\0\0\0", 8)));
  served.thread.join();
  CHECK(served.session.closed());
  std::array<char, 8> buffer{};
  CHECK(served.client->read(buffer, watchdog)->kind == ReadOutcome::Kind::end);
}

TEST_CASE("closing a client session wakes its reader") {
  Served served;
  const auto session = make_attach_session(std::move(served.client));
  std::jthread closer([&] { session->close(); });
  const auto frame = session->read();
  REQUIRE(frame);
  CHECK_FALSE(*frame);
}

TEST_CASE("a session passes through a server and a client, and through two of them") {
  std::atomic<int> closed = 0;
  const TestServer agent([&](const HttpRequest& request) {
    HttpResponse response;
    const AttachRequest asked = parse_attach_query(request.query);
    response.upgrade = HttpResponse::Upgrade{
        std::string(attach_protocol), [&, asked](ByteStream& s) {
          EchoSession session;
          (void)session.write({AttachFrameType::stdin_bytes, join(asked.cmd, ",")});
          serve_attach(s, session);
          closed += session.closed() ? 1 : 0;
        }};
    return response;
  });
  const auto to_agent = make_http_client({.base_url = agent.url(), .timeout = watchdog});
  REQUIRE(to_agent);
  const TestServer relay([&](const HttpRequest& request) {
    auto upstream = (*to_agent)->upgrade({.target = request.target}, attach_protocol);
    if (!upstream || !upstream->stream) return text_response(500, "refused");
    HttpResponse response;
    response.upgrade = HttpResponse::Upgrade{
        std::string(attach_protocol),
        [session = std::shared_ptr(make_attach_session(std::move(upstream->stream)))](
            ByteStream& stream) { serve_attach(stream, *session); }};
    return response;
  });
  for (const std::string& url : {agent.url(), relay.url()}) {
    const auto client = make_http_client({.base_url = url, .timeout = watchdog});
    REQUIRE(client);
    AttachRequest request;
    request.cmd = {"sh", "-c", "a b"};
    auto upgraded = (*client)->upgrade({.target = "/attach?" + attach_query(request).encode()},
                                       attach_protocol);
    REQUIRE(upgraded);
    REQUIRE(upgraded->stream);
    const auto session = make_attach_session(std::move(upgraded->stream));
    CHECK((**session->read()).payload == "sh,-c,a b");
    REQUIRE(session->write({AttachFrameType::stdin_bytes, "exit 3"}));
    CHECK(parse_exit((**session->read()).payload) == 3);
    CHECK_FALSE(*session->read());
  }
}

TEST_CASE("an attach request comes back from its query") {
  AttachRequest request;
  request.cmd = {"sh", "-lc", "echo a+b & c"};
  request.rows = 24;
  request.cols = 80;
  const AttachRequest back = parse_attach_query(Query(attach_query(request).encode()));
  CHECK(back.cmd == request.cmd);
  CHECK(back.tty);
  CHECK(back.rows == 24);
  CHECK(back.cols == 80);
}

TEST_CASE("sizes out of bounds count as not given, and tty may be a word") {
  const auto parsed = parse_attach_query(Query("tty=TRUE&rows=0&cols=65536"));
  CHECK(parsed.tty);
  CHECK(parsed.rows == 0);
  CHECK(parsed.cols == 0);
  CHECK(parse_attach_query(Query("rows=x&cols=-1")).rows == 0);
  CHECK_FALSE(parse_attach_query(Query("tty=0")).tty);
  CHECK_FALSE(parse_attach_query(Query("")).tty);
}

}  // namespace
}  // namespace fuse
