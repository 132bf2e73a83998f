#include "guest/channel/frame.h"

#include <vector>

#include "guest/channel/sync.h"
#include "tests/catch.h"
#include "tests/guest/random.h"

namespace fuse {
namespace {

// Feeds the bytes in pieces of random sizes.
std::vector<Frame> decode_in_pieces(std::string_view bytes, RandomBytes& random) {
  FrameDecoder decoder;
  std::vector<Frame> frames;
  while (!bytes.empty()) {
    const std::size_t size =
        std::min(bytes.size(), 1 + random.up_to(random.up_to(3) == 0 ? 5000 : 7));
    decoder.feed(bytes.substr(0, size));
    bytes.remove_prefix(size);
    while (true) {
      auto frame = decoder.next();
      REQUIRE(frame);
      if (!*frame) break;
      frames.push_back(**frame);
    }
  }
  return frames;
}

// What a reader makes of frames: data of one stream and pipe in a row is one
// piece, and pongs are nothing.
std::vector<Frame> meaning_of(const std::vector<Frame>& frames) {
  std::vector<Frame> out;
  for (const Frame& frame : frames) {
    if (frame.type == FrameType::ping && frame.flags == flag_pong) continue;
    const bool goes_on = frame.type == FrameType::data && !out.empty() &&
                         out.back().type == FrameType::data && out.back().stream == frame.stream &&
                         (out.back().flags | flag_end) == (frame.flags | flag_end) &&
                         (out.back().flags & flag_end) == 0;
    if (!goes_on) {
      out.push_back(frame);
      continue;
    }
    out.back().payload += frame.payload;
    out.back().flags = frame.flags;
  }
  return out;
}

Frame random_frame(RandomBytes& random) {
  constexpr FrameType types[] = {FrameType::open, FrameType::data,  FrameType::data,
                                 FrameType::data, FrameType::close, FrameType::window};
  Frame frame{.type = types[random.up_to(5)],
              .flags = static_cast<std::uint8_t>(random.up_to(7)),
              .stream = static_cast<std::uint32_t>(random.up_to(0xFFFFFFFFU))};
  if (frame.type == FrameType::data) {
    frame.payload = random.of_size(random.up_to(random.up_to(9) == 0 ? most_frame_payload : 100));
  } else if (frame.type == FrameType::window) {
    frame.payload = u32_payload(static_cast<std::uint32_t>(random.up_to(0xFFFFFFFFU)));
  } else {
    frame.payload = std::string(random.up_to(200), 'x');
  }
  return frame;
}

TEST_CASE("a frame's bytes are its header in big-endian and its payload") {
  std::string bytes;
  append_frame(bytes, {.type = FrameType::data,
                       .flags = pipe_err | flag_end,
                       .stream = 0x01020304,
                       .payload = "ab"});
  CHECK(bytes == std::string("\x03\x06\0\0\x01\x02\x03\x04\0\0\0\x02"
                             "ab",
                             14));
}

TEST_CASE("frames come out of random pieces as they went in") {
  RandomBytes random(1);
  for (int round = 0; round < 300; ++round) {
    std::string bytes;
    std::vector<Frame> sent;
    for (std::size_t i = random.up_to(12); i > 0; --i) {
      sent.push_back(random_frame(random));
      append_frame(bytes, sent.back());
    }
    CHECK(meaning_of(decode_in_pieces(bytes, random)) == meaning_of(sent));
  }
}

TEST_CASE("encoded frames never hold the sync mark nor end in a part of it") {
  RandomBytes random(2);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes;
    Frame frame{.type = FrameType::data, .stream = static_cast<std::uint32_t>(round)};
    // The mark whole, several times, and at the very places where a header's
    // length could be the beginning of it.
    frame.payload = random.of_size(random.up_to(40));
    for (std::size_t i = random.up_to(3); i > 0; --i) {
      frame.payload += sync_mark.substr(random.up_to(2));
      frame.payload += random.of_size(random.up_to(20));
    }
    append_frame(bytes, frame);
    CHECK(bytes.find(sync_mark) == std::string::npos);
    CHECK(sync_mark_tail(bytes) == 0);
    CHECK(meaning_of(decode_in_pieces(bytes, random)).front() == frame);
  }
}

TEST_CASE("a payload whose length spells the beginning of the mark is cut") {
  // 0xFFF5 bytes that go on where the two bytes of the length leave off.
  std::string payload(sync_mark.substr(2));
  payload.resize(0xFFF5, 'x');
  std::string bytes;
  append_frame(bytes, {.type = FrameType::data, .stream = 1, .payload = payload});
  CHECK(bytes.find(sync_mark) == std::string::npos);
  RandomBytes random(3);
  CHECK(meaning_of(decode_in_pieces(bytes, random)).front().payload == payload);
}

TEST_CASE("the flag that ends a pipe stays on the last piece of a cut payload") {
  std::string bytes;
  append_frame(bytes, {.type = FrameType::data,
                       .flags = pipe_in | flag_end,
                       .stream = 1,
                       .payload = std::string(sync_mark) + "rest"});
  FrameDecoder decoder;
  decoder.feed(bytes);
  std::vector<std::uint8_t> flags;
  while (true) {
    auto frame = decoder.next();
    REQUIRE(frame);
    if (!*frame) break;
    flags.push_back((*frame)->flags);
  }
  REQUIRE(flags.size() == 2);
  CHECK(flags[0] == pipe_in);
  CHECK(flags[1] == (pipe_in | flag_end));
}

TEST_CASE("bytes that are no frame are an error until the decoder is reset") {
  const std::string unknown_type("\x09\0\0\0\0\0\0\x01\0\0\0\0", 12);
  const std::string too_long("\x03\0\0\0\0\0\0\x01\0\x01\0\x01", 12);
  const std::string reserved("\x03\0\0\x01\0\0\0\x01\0\0\0\0", 12);
  for (const std::string& bytes : {unknown_type, too_long, reserved}) {
    FrameDecoder decoder;
    decoder.feed(bytes);
    CHECK(decoder.next().error().code == ErrorCode::invalid_argument);
    std::string good;
    append_frame(good, {.type = FrameType::ping});
    decoder.feed(good);
    CHECK_FALSE(decoder.next());
    decoder.reset();
    decoder.feed(good);
    REQUIRE(decoder.next());
  }
}

TEST_CASE("a frame of the largest size is taken whole") {
  std::string bytes;
  append_frame(bytes, {.type = FrameType::data, .payload = std::string(most_frame_payload, 'a')});
  FrameDecoder decoder;
  decoder.feed(bytes);
  const auto frame = decoder.next();
  REQUIRE(frame);
  REQUIRE(*frame);
  CHECK((*frame)->payload.size() == most_frame_payload);
}

TEST_CASE("numbers of payloads go there and back, and only in their size") {
  CHECK(parse_u32_payload(u32_payload(0xFEDCBA98U)) == 0xFEDCBA98U);
  CHECK(parse_u64_payload(u64_payload(0xFEDCBA9876543210ULL)) == 0xFEDCBA9876543210ULL);
  CHECK_FALSE(parse_u32_payload("abc"));
  CHECK_FALSE(parse_u64_payload("abcdefghi"));
}

}  // namespace
}  // namespace fuse
