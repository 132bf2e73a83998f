#include "net/attach_frames.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/net/random.h"

namespace fuse {
namespace {

using namespace std::string_literals;

bool same(const AttachFrame& a, const AttachFrame& b) {
  return a.type == b.type && a.payload == b.payload;
}

// Every frame that `bytes` hold, fed at once.
std::vector<AttachFrame> decode(std::string_view bytes) {
  AttachDecoder decoder;
  decoder.feed(bytes);
  std::vector<AttachFrame> frames;
  while (true) {
    auto frame = decoder.next();
    REQUIRE(frame);
    if (!*frame) return frames;
    frames.push_back(**std::move(frame));
  }
}

TEST_CASE("a frame is type, three zeros, length and payload") {
  CHECK(encode_attach_frame({AttachFrameType::stdout_bytes, "hi"}) == "\x01\0\0\0\0\0\0\x02hi"s);
  CHECK(encode_attach_frame({AttachFrameType::stdin_bytes, ""}) == "\0\0\0\0\0\0\0\0"s);
  CHECK(encode_attach_frame({AttachFrameType::exit, std::string(0x1234, 'x')}).substr(0, 8) ==
        "\x04\0\0\0\0\0\x12\x34"s);
}

TEST_CASE("bytes 1 to 3 are ignored") {
  const auto frames = decode("\x02\x07\x08\x09\0\0\0\x01z"s);
  REQUIRE(frames.size() == 1);
  CHECK(same(frames[0], {AttachFrameType::stderr_bytes, "z"}));
}

TEST_CASE("frames of unknown types are skipped") {
  const auto frames = decode("\x05\0\0\0\0\0\0\x03"s + "abc" + "\xFF\0\0\0\0\0\0\0"s +
                             encode_attach_frame({AttachFrameType::stdout_bytes, "x"}));
  REQUIRE(frames.size() == 1);
  CHECK(same(frames[0], {AttachFrameType::stdout_bytes, "x"}));
}

TEST_CASE("a length beyond 1 MiB is refused before any payload comes") {
  AttachDecoder decoder;
  decoder.feed("\x01\0\0\0\0\x10\0\x01"s);
  const auto frame = decoder.next();
  REQUIRE_FALSE(frame);
  CHECK(frame.error().code == ErrorCode::payload_too_large);
  CHECK(frame.error().message == "an attach frame claims 1048577 bytes; the most is 1048576");

  AttachDecoder huge;
  huge.feed("\x63\0\0\0\xFF\xFF\xFF\xFF"s);
  CHECK_FALSE(huge.next());
}

TEST_CASE("a payload of exactly 1 MiB is one frame, a longer one several") {
  const std::string most(most_attach_payload, 'a');
  CHECK(decode(encode_attach_frame({AttachFrameType::stdout_bytes, most})).size() == 1);

  const auto frames =
      decode(encode_attach_frame({AttachFrameType::stdout_bytes, most + most + "b"}));
  REQUIRE(frames.size() == 3);
  CHECK(frames[2].payload == "b");
}

TEST_CASE("any frames come back from pieces of any size") {
  Random random(4);
  for (int round = 0; round < 60; ++round) {
    std::vector<AttachFrame> sent;
    std::string bytes;
    for (std::size_t n = random.below(8); n > 0; --n) {
      AttachFrame frame{static_cast<AttachFrameType>(random.below(5)),
                        random.bytes(random.below(200))};
      bytes += encode_attach_frame(frame);
      sent.push_back(std::move(frame));
    }
    AttachDecoder decoder;
    std::vector<AttachFrame> got;
    for (const std::string& piece : random.pieces(bytes, 1 + random.below(50))) {
      decoder.feed(piece);
      for (auto frame = decoder.next(); *frame; frame = decoder.next()) got.push_back(**frame);
    }
    CHECK(std::ranges::equal(got, sent, same));
    CHECK_FALSE(decoder.inside_frame());
  }
}

TEST_CASE("a cut frame leaves the decoder inside it") {
  AttachDecoder decoder;
  decoder.feed(encode_attach_frame({AttachFrameType::stdin_bytes, "abc"}).substr(0, 10));
  REQUIRE(decoder.next());
  CHECK(decoder.inside_frame());
}

TEST_CASE("a resize has rows and columns from 1 to 65535") {
  CHECK(encode_resize({24, 80}) == R"({"rows":24,"cols":80})");
  const auto size = parse_resize(R"({"cols":80,"rows":24,"x":[]})");
  REQUIRE(size);
  CHECK(size->rows == 24);
  CHECK(size->cols == 80);
  CHECK(parse_resize(R"({"rows":70000,"cols":1})")->rows == 65535);
  for (const char* bad : {"", "x", "[]", "{}", R"({"rows":0,"cols":80})",
                          R"({"rows":24,"cols":-1})", R"({"rows":"24","cols":80})"}) {
    CHECK_FALSE(parse_resize(bad));
  }
}

TEST_CASE("an exit code comes back") {
  for (const int code : {0, 1, 124, 255, -1}) CHECK(parse_exit(encode_exit(code)) == code);
  CHECK(encode_exit(130) == R"({"exit_code":130})");
  for (const char* bad : {"", "{}", R"({"exit_code":"1"})", R"({"exit_code":99999999999})"}) {
    CHECK_FALSE(parse_exit(bad));
  }
}

}  // namespace
}  // namespace fuse
