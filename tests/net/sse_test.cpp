#include "net/sse.h"

#include "tests/catch.h"
#include "tests/net/random.h"

namespace fuse {
namespace {

std::vector<std::string> parse(std::string_view stream) {
  SseParser parser;
  std::vector<std::string> out;
  const auto events = parser.feed(stream);
  if (!events) return {events.error().message};
  for (const SseEvent& event : *events) out.push_back(event.id + "|" + event.data);
  return out;
}

using Events = std::vector<std::string>;

TEST_CASE("an event is its id and data lines") {
  CHECK(encode_sse({"7", "{}"}) == "id: 7\ndata: {}\n\n");
  CHECK(encode_sse({"", "x"}) == "data: x\n\n");
  CHECK(parse("id: 7\ndata: {}\n\n") == Events{"7|{}"});
}

TEST_CASE("several data lines are glued without anything between them") {
  CHECK(parse("data: {\"a\":\ndata:1}\n\n") == Events{"|{\"a\":1}"});
}

TEST_CASE("only one blank behind the colon belongs to the syntax") {
  CHECK(parse("data:  x \n\n") == Events{"| x "});
}

TEST_CASE("comments, other fields and events without data are skipped") {
  CHECK(parse(": keepalive\n\nevent: x\nretry: 9\nid: 1\n\ndata: y\n\n") == Events{"|y"});
  CHECK(parse("data\n\n") == Events{"|"});
}

TEST_CASE("any line end will do") {
  CHECK(parse("id: 1\r\ndata: a\r\n\r\nid: 2\rdata: b\r\rdata: c\n\n") ==
        Events{"1|a", "2|b", "|c"});
}

TEST_CASE("the last id is kept across events") {
  SseParser parser;
  REQUIRE(parser.feed("id: 5\ndata: a\n\ndata: b\n\n: c\n\n"));
  CHECK(parser.last_id() == "5");
}

TEST_CASE("an unfinished event is not given out") {
  SseParser parser;
  CHECK(parser.feed("data: a\n")->empty());
  CHECK(parser.feed("\n")->size() == 1);
}

TEST_CASE("pieces of any size make the same events") {
  Random random(3);
  for (int round = 0; round < 50; ++round) {
    std::string stream;
    Events wanted;
    for (std::size_t n = random.below(6); n > 0; --n) {
      const SseEvent event{random.of("0123456789abcdef", random.below(5)),
                           random.of("{}\": ,xyz", 1 + random.below(30))};
      stream += encode_sse(event);
      if (random.below(3) == 0) stream += sse_keepalive();
      // A leading blank of the data is the one that the syntax eats.
      wanted.push_back(event.id + "|" + event.data);
    }
    SseParser parser;
    Events got;
    for (const std::string& piece : random.pieces(stream, 7)) {
      const auto events = parser.feed(piece);
      REQUIRE(events);
      for (const SseEvent& event : *events) got.push_back(event.id + "|" + event.data);
    }
    CHECK(got == wanted);
  }
}

TEST_CASE("an event of up to 1 MiB is taken, a larger one refused") {
  const std::string most(SseParser::most_event, 'x');
  CHECK(parse("data: " + most + "\n\n") == Events{"|" + most});

  SseParser one_line;
  const auto long_line = one_line.feed("data: " + most + std::string(100, 'x'));
  REQUIRE_FALSE(long_line);
  CHECK(long_line.error().code == ErrorCode::payload_too_large);

  SseParser many_lines;
  const std::string half(SseParser::most_event / 2, 'x');
  const auto glued = many_lines.feed("data: " + half + "\ndata: " + half + "\ndata: x\n");
  REQUIRE_FALSE(glued);
  CHECK(glued.error().code == ErrorCode::payload_too_large);
}

}  // namespace
}  // namespace fuse
