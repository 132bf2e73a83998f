#include "net/chunked.h"

#include "tests/catch.h"
#include "tests/net/random.h"

namespace fuse {
namespace {

using namespace std::string_literals;

// What `bytes` decode to, with "!" behind when they are malformed and "..." when
// they do not come to an end.
std::string decode(std::string_view bytes) {
  ChunkedDecoder decoder;
  std::string out;
  const auto step = decoder.feed(bytes, out);
  if (!step) return out + "!";
  return step->done ? out : out + "...";
}

TEST_CASE("chunks are decoded up to the last one") {
  CHECK(decode("5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\n\r\n") == "hello world");
  CHECK(decode("A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n") == "0123456789");
  CHECK(decode("0\r\n\r\n").empty());
  CHECK(decode("000005\r\nhello\r\n0\r\n\r\n") == "hello");
}

TEST_CASE("an unfinished body is not done") {
  CHECK(decode("5\r\nhel") == "hel...");
  CHECK(decode("5\r\nhello\r\n") == "hello...");
  CHECK(decode("0\r\n") == "...");
}

TEST_CASE("what is not chunked is refused") {
  for (const std::string& bad :
       {"x\r\n"s, "\r\n"s, "-1\r\n"s, "0x5\r\nhello\r\n"s, "5\nhello\r\n"s, "+5\r\nhello\r\n"s,
        "11111111111111111\r\n"s, "5 5\r\nhello\r\n"s}) {
    CAPTURE(bad);
    CHECK(decode(bad) == "!");
  }
  CHECK(decode("5\r\nhelloX\r\n") == "hello!");
  CHECK(decode("5\r\nhello\n") == "hello!");
}

TEST_CASE("endless lines and trailers are refused") {
  CHECK(decode("5;" + std::string(5000, 'x')) == "!");
  std::string trailers = "0\r\n";
  for (int i = 0; i < 2000; ++i) trailers += "Trailer: xxxx\r\n";
  CHECK(decode(trailers) == "!");
}

TEST_CASE("what follows the last chunk is left to the next message") {
  ChunkedDecoder decoder;
  std::string out;
  const std::string body = "1\r\na\r\n0\r\n\r\n";
  const auto step = decoder.feed(body + "GET / HTTP/1.1", out);
  REQUIRE(step);
  CHECK(step->done);
  CHECK(step->used == body.size());
}

TEST_CASE("any body comes back from chunks and pieces of any size") {
  Random random(6);
  for (int round = 0; round < 60; ++round) {
    const std::string body = random.bytes(random.below(3000));
    std::string wire;
    for (const std::string& chunk : random.pieces(body, 700)) wire += encode_chunk(chunk);
    wire += last_chunk;
    ChunkedDecoder decoder;
    std::string out;
    bool done = false;
    for (const std::string& piece : random.pieces(wire, 1 + random.below(90))) {
      REQUIRE_FALSE(done);
      const auto step = decoder.feed(piece, out);
      REQUIRE(step);
      CHECK(step->used == piece.size());
      done = step->done;
    }
    CHECK(done);
    CHECK(out == body);
  }
}

TEST_CASE("no bytes are no chunk, which would be the end") {
  CHECK(encode_chunk("").empty());
}

}  // namespace
}  // namespace fuse
