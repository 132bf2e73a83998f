#include "guest/channel/client.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stop_token>
#include <thread>

#include "base/files.h"
#include "guest/channel/frame.h"
#include "guest/channel/sync.h"
#include "tests/catch.h"
#include "tests/guest/random.h"

namespace fuse {
namespace {

constexpr GuestLimits patient{.hello = std::chrono::seconds(60),
                              .silence = std::chrono::seconds(60)};

std::pair<Fd, Fd> socket_pair() {
  std::array<int, 2> fds{-1, -1};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0);
  return {Fd(fds[0]), Fd(fds[1])};
}

std::string encoded(const Frame& frame) {
  std::string out;
  append_frame(out, frame);
  return out;
}

std::string hello_frame(std::int32_t protocol = guest_protocol) {
  return encoded({.type = FrameType::hello,
                  .payload = hello_text({.protocol = protocol, .hostname = "by-hand"})});
}

// A guest whose every byte is written by the test, in a thread of its own.
class ByHand {
 public:
  explicit ByHand(Fd fd) : fd_(std::move(fd)) {}

  void send(std::string_view bytes) { (void)write_all(fd_.get(), bytes, "send"); }
  void send(const Frame& frame) { send(encoded(frame)); }

  // The nonce with which the host begins.
  std::string await_sync() {
    while (true) {
      if (auto piece = scanner_.next()) {
        if (piece->nonce) return *piece->nonce;
      } else if (!receive()) {
        return {};
      }
    }
  }
  void greet() { send(sync_message(await_sync()) + hello_frame()); }

  // The next frame of the type; an empty ping once the host has gone.
  Frame await(FrameType type) {
    while (true) {
      while (auto piece = scanner_.next()) decoder_.feed(piece->bytes);
      const auto frame = decoder_.next();
      if (frame && *frame && (*frame)->type == type) return **frame;
      if (frame && *frame) continue;
      if (!receive()) return {};
    }
  }
  void hang_up() { fd_.reset(); }

 private:
  bool receive() {
    std::array<char, 4096> buffer{};
    const ssize_t got = ::read(fd_.get(), buffer.data(), buffer.size());
    if (got <= 0) return false;
    scanner_.feed({buffer.data(), static_cast<std::size_t>(got)});
    return true;
  }

  Fd fd_;
  SyncScanner scanner_{};
  FrameDecoder decoder_{};
};

// Runs the guest's part beside the test.
struct Guest {
  template <class F>
  explicit Guest(F part) {
    auto [host, guest] = socket_pair();
    host_end = std::move(host);
    thread = std::thread([by_hand = ByHand(std::move(guest)), part]() mutable { part(by_hand); });
  }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  ~Guest() {
    client.reset();
    host_end.reset();
    thread.join();
  }
  GuestClient& connect(const GuestLimits& limits = patient) {
    auto connected = GuestClient::connect(std::move(host_end), limits);
    REQUIRE(connected);
    client = *std::move(connected);
    return *client;
  }

  Fd host_end{};
  std::unique_ptr<GuestClient> client{};
  std::thread thread{};
};

Error failure_of(Guest& guest) {
  const auto result = guest.connect().exec({.argv = {"x"}});
  REQUIRE_FALSE(result);
  return result.error();
}

TEST_CASE("a channel on which nobody answers is unreachable, with the likely reasons") {
  auto [host, guest] = socket_pair();
  const auto client =
      GuestClient::connect(std::move(host), {.hello = std::chrono::milliseconds(20)});
  REQUIRE_FALSE(client);
  CHECK(client.error().code == ErrorCode::unreachable);
  CHECK(client.error().message ==
        "the guest's channel: no hello within 20 ms: nothing listens in the guest yet, or the "
        "channel is held by another process");
}

TEST_CASE("waiting for a hello can be interrupted") {
  auto [host, guest] = socket_pair();
  std::stop_source stop;
  std::thread interrupter([&] { stop.request_stop(); });
  const auto client = GuestClient::connect(std::move(host), patient, stop.get_token());
  interrupter.join();
  REQUIRE_FALSE(client);
  CHECK(client.error().code == ErrorCode::unavailable);
}

TEST_CASE("bytes of older connections are passed over") {
  RandomBytes random(21);
  Guest guest([&random](ByHand& by_hand) {
    const std::string nonce = by_hand.await_sync();
    by_hand.send(random.of_size(5000));
    by_hand.send(sync_message(restart_nonce()) + hello_frame());
    by_hand.send(sync_message(new_sync_nonce()) + hello_frame() + "\x03\0");
    by_hand.send(sync_message(nonce) + hello_frame());
    (void)by_hand.await(FrameType::close);  // stays until the host has hung up
  });
  CHECK(guest.connect().hello().hostname == "by-hand");
}

TEST_CASE("an agent of another protocol is not talked to") {
  Guest guest(
      [](ByHand& by_hand) { by_hand.send(sync_message(by_hand.await_sync()) + hello_frame(99)); });
  const auto client = GuestClient::connect(std::move(guest.host_end), patient);
  REQUIRE_FALSE(client);
  CHECK(client.error().message ==
        "the guest's channel: the guest's agent speaks protocol 99, not 1");
}

TEST_CASE("what begins without a hello is not an agent") {
  Guest guest([](ByHand& by_hand) {
    by_hand.send(sync_message(by_hand.await_sync()));
    by_hand.send({.type = FrameType::close, .stream = 1});
  });
  const auto client = GuestClient::connect(std::move(guest.host_end), patient);
  REQUIRE_FALSE(client);
  CHECK(client.error().code == ErrorCode::unreachable);
}

TEST_CASE("a connection that ends during a call is unreachable") {
  Guest guest([](ByHand& by_hand) {
    by_hand.greet();
    by_hand.await(FrameType::open);
    by_hand.hang_up();
  });
  CHECK(failure_of(guest).code == ErrorCode::unreachable);
  CHECK_FALSE(guest.client->alive());
}

TEST_CASE("an agent that begins anew ends the connection at once") {
  Guest guest([](ByHand& by_hand) {
    by_hand.greet();
    by_hand.await(FrameType::open);
    by_hand.send(sync_message(restart_nonce()));
    by_hand.await_sync();
  });
  CHECK(failure_of(guest).message == "the guest's channel: the guest's agent began anew");
}

TEST_CASE("a guest that says nothing is asked, and given up") {
  Guest guest([](ByHand& by_hand) {
    by_hand.greet();
    by_hand.await(FrameType::open);
    CHECK(by_hand.await(FrameType::ping).flags == 0);
    by_hand.await_sync();
  });
  GuestClient& client =
      guest.connect({.hello = std::chrono::seconds(60), .silence = std::chrono::milliseconds(30)});
  const auto result = client.exec({.argv = {"x"}});
  REQUIRE_FALSE(result);
  CHECK(result.error().message == "the guest's channel: the guest does not answer any more");
}

TEST_CASE("a guest that answers pings may be silent for long") {
  Guest guest([](ByHand& by_hand) {
    by_hand.greet();
    const Frame open = by_hand.await(FrameType::open);
    for (int i = 0; i < 5; ++i) {
      by_hand.await(FrameType::ping);
      by_hand.send({.type = FrameType::ping, .flags = flag_pong});
    }
    by_hand.send({.type = FrameType::close,
                  .stream = open.stream,
                  .payload = exec_result_text({.status = {.code = 6}})});
    by_hand.await_sync();
  });
  GuestClient& client =
      guest.connect({.hello = std::chrono::seconds(60), .silence = std::chrono::milliseconds(200)});
  const auto result = client.exec({.argv = {"x"}});
  REQUIRE(result);
  CHECK(result->status.code == 6);
}

TEST_CASE("a guest's ping is answered") {
  Guest guest([](ByHand& by_hand) {
    by_hand.greet();
    const Frame open = by_hand.await(FrameType::open);
    by_hand.send({.type = FrameType::ping});
    const Frame pong = by_hand.await(FrameType::ping);
    by_hand.send({.type = FrameType::close,
                  .stream = open.stream,
                  .payload = exec_result_text({.status = {.code = pong.flags == flag_pong}})});
    by_hand.await_sync();
  });
  const auto result = guest.connect().exec({.argv = {"x"}});
  REQUIRE(result);
  CHECK(result->status.code == 1);
}

TEST_CASE("a guest that breaks the rules is not listened to any more") {
  const auto after_open = [](const std::function<void(ByHand&, std::uint32_t)>& misbehave) {
    Guest guest([misbehave](ByHand& by_hand) {
      by_hand.greet();
      const Frame open = by_hand.await(FrameType::open);
      misbehave(by_hand, open.stream);
      by_hand.await_sync();
    });
    return failure_of(guest).message;
  };
  CHECK(after_open([](ByHand& by_hand, std::uint32_t) { by_hand.send(std::string(12, '\x55')); }) ==
        "the guest's channel: not a frame of the channel: type 85");
  CHECK(after_open([](ByHand& by_hand, std::uint32_t stream) {
          by_hand.send(
              {.type = FrameType::window, .stream = stream, .payload = u32_payload(1U << 30U)});
        }) == "the guest's channel: the guest granted more than it may");
  CHECK(after_open([](ByHand& by_hand, std::uint32_t stream) {
          by_hand.send({.type = FrameType::open, .stream = stream});
        }) == "the guest's channel: a frame that a guest does not send");
}

TEST_CASE("a guest that sends more than it was granted is not listened to any more") {
  Guest guest([](ByHand& by_hand) {
    by_hand.greet();
    const Frame open = by_hand.await(FrameType::open);
    for (int i = 0; i < 5; ++i) {
      by_hand.send({.type = FrameType::data,
                    .flags = pipe_out,
                    .stream = open.stream,
                    .payload = std::string(most_frame_payload, 'x')});
    }
    by_hand.await_sync();
  });
  // A session that nobody reads takes the credit and no more.
  const std::string why = "the guest's channel: the guest sent more than it was granted";
  const auto session = guest.connect().open_attach({.cmd = {"x"}, .tty = false});
  // It may have come to that before the session was handed over.
  if (!session) CHECK(session.error().message == why);
  while (guest.client->alive()) std::this_thread::yield();
  CHECK(guest.client->job_status().error().message == why);
}

TEST_CASE("an answer that cannot be read is an error of that call alone") {
  Guest guest([](ByHand& by_hand) {
    by_hand.greet();
    Frame open = by_hand.await(FrameType::open);
    by_hand.send({.type = FrameType::close, .stream = open.stream, .payload = "nonsense"});
    open = by_hand.await(FrameType::open);
    by_hand.send({.type = FrameType::error,
                  .stream = open.stream,
                  .payload = error_text({ErrorCode::conflict, "no"})});
    by_hand.await_sync();
  });
  CHECK(failure_of(guest).code == ErrorCode::invalid_argument);
  const auto refused = guest.client->start_job("k", {.script = "x"});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::conflict);
  CHECK(refused.error().message == "no");
}

TEST_CASE("closing a client ends the calls of other threads") {
  Guest guest([](ByHand& by_hand) {
    by_hand.greet();
    by_hand.await(FrameType::open);
    by_hand.await_sync();
  });
  GuestClient& client = guest.connect();
  std::thread closer([&] { client.close(); });
  const auto result = client.exec({.argv = {"x"}});
  closer.join();
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::unreachable);
  client.close();
}

}  // namespace
}  // namespace fuse
