#include "net/upgrade_call.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "tests/catch.h"
#include "tests/net/memory_transport.h"

namespace fuse {
namespace {

constexpr std::size_t most_body = 10;

// A server that answers with these bytes, whatever it is asked.
struct Answer {
  std::string asked{};
  std::string bytes;
  SocketStream connection{
      std::make_unique<MemoryTransport>(std::vector<std::string_view>{bytes}, asked)};
  Result<HttpReply> reply = ask_for_upgrade(
      connection, {.method = "GET",
                   .target = "/attach?cmd=a+b%2B'",
                   .headers = {{"Host", "h"}, {"Connection", "Upgrade"}, {"Upgrade", "p"}},
                   .most_body = most_body,
                   .timeout = std::chrono::minutes(1)});

  explicit Answer(std::string text) : bytes(std::move(text)) {}
};

TEST_CASE("an upgrade is asked for as told, and what follows the 101 is left alone") {
  Answer answer("HTTP/1.1 101 Switching Protocols\r\nUpgrade: p\r\nX-A: %41\r\n\r\nearly");
  REQUIRE(answer.reply);
  CHECK(answer.asked.starts_with("GET /attach?cmd=a+b%2B' HTTP/1.1\r\n"));
  CHECK(answer.asked.find("\r\nUpgrade: p\r\n") != std::string::npos);
  CHECK(answer.asked.find("\r\nHost: h\r\n") != std::string::npos);
  CHECK(answer.asked.ends_with("\r\n\r\n"));
  CHECK(answer.reply->status == 101);
  CHECK(answer.reply->headers.get("upgrade") == "p");
  CHECK(answer.reply->headers.get("x-a") == "%41");
  std::array<char, 16> buffer{};
  const auto early = answer.connection.read(buffer, std::nullopt);
  REQUIRE(early);
  CHECK(std::string_view(buffer.data(), early->size) == "early");
}

TEST_CASE("a refusal comes with as much of its body as is wanted and there") {
  const auto body = [](const std::string& bytes) {
    const Answer answer("HTTP/1.1 404 Not Found\r\n" + bytes);
    REQUIRE(answer.reply);
    CHECK(answer.reply->status == 404);
    return answer.reply->body;
  };
  CHECK(body("Content-Length: 4\r\n\r\ngone") == "gone");
  CHECK(body("Transfer-Encoding: chunked\r\n\r\n4\r\ngone\r\n0\r\n\r\n") == "gone");
  CHECK(body("\r\ngone") == "gone");
  CHECK(body("Content-Length: 12\r\n\r\n0123456789ab") == "0123456789");
  CHECK(body("Content-Length: 40\r\n\r\nhalf") == "half");
  CHECK(body("Transfer-Encoding: chunked\r\n\r\nnonsense\r\n").empty());
}

TEST_CASE("an answer that is none is an error in words") {
  const auto why = [](const std::string& bytes) {
    const Answer answer(bytes);
    return answer.reply ? "a reply" : answer.reply.error().message;
  };
  CHECK(why("HTTP/1.1 101 Switch") == "it closed the connection");
  for (const std::string& bad :
       {std::string("SSH-2.0-x\r\n\r\n"), std::string("HTTP/1.1 2 x\r\n\r\n"),
        std::string("HTTP/1.1 2000 x\r\n\r\n"), std::string("HTTP/1.1 -10 x\r\n\r\n"),
        std::string("HTTP/1.1 200 x\r\nbad\r\n\r\n"),
        cat("HTTP/1.1 200 ", std::string(60000, 'x'), "\r\n\r\n"),
        cat("HTTP/1.1 200 OK\r\nA: ", std::string(70000, 'x'), "\r\n\r\n")}) {
    CHECK(why(bad) == "its answer is not HTTP");
  }
}

}  // namespace
}  // namespace fuse
