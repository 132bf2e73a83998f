#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/ids.h"
#include "base/json_reader.h"
#include "base/locked.h"
#include "base/log.h"
#include "base/posix_host.h"
#include "base/quiet_log.h"
#include "base/version.h"
#include "tests/base/folder.h"
#include "tests/catch.h"
#include "tests/fakes/fake_clock.h"

namespace fuse {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a time is written and read as RFC 3339") {
  const WallTime epoch{};
  CHECK(to_rfc3339(epoch) == "1970-01-01T00:00:00Z");
  CHECK(to_rfc3339(epoch + 1s + 500ms) == "1970-01-01T00:00:01.5Z");
  CHECK(to_rfc3339(epoch + 1ns) == "1970-01-01T00:00:00.000000001Z");
  CHECK(to_rfc3339(epoch - 1ns) == "1969-12-31T23:59:59.999999999Z");

  CHECK(parse_rfc3339("1970-01-01T02:00:00+02:00") == epoch);
  CHECK(parse_rfc3339("1969-12-31T23:30:00-00:30") == epoch);
  CHECK(parse_rfc3339("2024-02-29T00:00:00Z").has_value());
  CHECK(to_rfc3339(*parse_rfc3339("2026-11-30T15:04:05.123456789Z")) ==
        "2026-11-30T15:04:05.123456789Z");
}

TEST_CASE("what is no time is refused") {
  for (const char* bad :
       {"", "2026-11-30", "2026-11-30T15:04:05", "2026-11-30 15:04:05Z", "2026-13-01T00:00:00Z",
        "2023-02-29T00:00:00Z", "2026-11-30T24:00:00Z", "2026-11-30T15:60:00Z",
        "2026-11-30T15:04:60Z", "2026-11-30T15:04:05.Z", "2026-11-30T15:04:05.1234567890Z",
        "2026-11-30T15:04:05+0200", "2026-11-30T15:04:05+02:60", "2026-11-30T15:04:05Zx",
        "+026-11-30T15:04:05Z"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_rfc3339(bad));
  }
}

TEST_CASE("a time beyond what the clock can count is refused, not wrapped") {
  CHECK_FALSE(parse_rfc3339("9999-12-31T23:59:59Z"));
  CHECK_FALSE(parse_rfc3339("0001-01-01T00:00:00Z"));
  CHECK(to_rfc3339(*parse_rfc3339("2261-12-31T23:59:59Z")) == "2261-12-31T23:59:59Z");
  CHECK(to_rfc3339(*parse_rfc3339("1678-01-01T00:00:00Z")) == "1678-01-01T00:00:00Z");
}

TEST_CASE("a fake clock moves when it is told to") {
  FakeClock clock;
  const WallTime before = clock.wall();
  const SteadyTime steady = clock.steady();
  clock.sleep(90s);
  CHECK(clock.wall() - before == 90s);
  CHECK(clock.steady() - steady == 90s);
}

TEST_CASE("the hash of bytes is SHA-256, in one piece or several") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 hash;
  hash.update("a");
  hash.update("");
  hash.update("bc");
  CHECK(hash.finish() == sha256_hex("abc"));

  const Folder folder;
  const fs::path file = folder.path() / "f";
  const std::string large(3U << 20U, 'x');
  REQUIRE(PosixHost().replace_file(file, large, 0600));
  CHECK(*sha256_of_file(file) == sha256_hex(large));
  CHECK(sha256_of_file(folder.path() / "none").error().code == ErrorCode::not_found);
}

TEST_CASE("a sealed value opens with its key and context alone") {
  const std::string key(32, 'k');
  for (const std::string& plain : {std::string(), std::string("secret"), std::string(5000, '\0')}) {
    for (const std::string& context : {std::string(), std::string("row 7")}) {
      const std::string sealed = seal(key, context, plain);
      CHECK(sealed.size() == plain.size() + 12 + 16);
      const auto opened = open_sealed(key, context, sealed);
      REQUIRE(opened);
      CHECK(*opened == plain);
      CHECK(open_sealed(std::string(32, 'x'), context, sealed).error().code ==
            ErrorCode::unauthorized);
      CHECK_FALSE(open_sealed(key, "row 8", sealed));
    }
  }
}

TEST_CASE("a sealed value that was touched does not open") {
  const std::string key = random_bytes(32);
  const std::string sealed = seal(key, "c", "some secret");
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    std::string touched = sealed;
    touched[i] = static_cast<char>(touched[i] ^ 1);
    CHECK_FALSE(open_sealed(key, "c", touched));
    CHECK_FALSE(open_sealed(key, "c", sealed.substr(0, i)));
  }
  CHECK(seal(key, "c", "some secret") != sealed);
}

TEST_CASE("a comparison in constant time compares") {
  CHECK(equal_in_constant_time("", ""));
  CHECK(equal_in_constant_time("token", "token"));
  CHECK_FALSE(equal_in_constant_time("token", "Token"));
  CHECK_FALSE(equal_in_constant_time("token", "toke"));
}

TEST_CASE("ULIDs sort by their time and are unique") {
  const WallTime now = WallTime(std::chrono::hours(24 * 365 * 50));
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(new_ulid(now));
  CHECK(seen.size() == 1000);
  CHECK(new_ulid(now) < new_ulid(now + 1ms));
  CHECK(new_ulid(now).substr(0, 10) == new_ulid(now).substr(0, 10));
  CHECK(new_ulid(WallTime{}).starts_with("0000000000"));
  for (const std::string& id : seen) {
    CHECK(id.size() == 26);
    CHECK(id.find_first_not_of("0123456789ABCDEFGHJKMNPQRSTVWXYZ") == std::string::npos);
  }
}

TEST_CASE("a ULID has the form of a UUID, too") {
  CHECK(ulid_to_uuid("00000000000000000000000000") == "00000000-0000-0000-0000-000000000000");
  CHECK(ulid_to_uuid("7ZZZZZZZZZZZZZZZZZZZZZZZZZ") == "ffffffff-ffff-ffff-ffff-ffffffffffff");
  CHECK(ulid_to_uuid("01ARZ3NDEKTSV4RRFFQ69G5FAV") == "01563e3a-b5d3-d676-4c61-efb99302bd5b");
}

TEST_CASE("random hex has two digits a byte") {
  CHECK(random_hex(16).size() == 32);
  CHECK(random_hex(16) != random_hex(16));
  CHECK(random_bytes(0).empty());
}

std::string complaint(std::string_view text) {
  const auto json = parse_json(text);
  return json ? "none" : json.error().message;
}

TEST_CASE("JSON that is none is refused with the place") {
  CHECK(complaint("{}") == "none");
  CHECK(complaint("").starts_with("invalid JSON body: "));
  CHECK(complaint("{").starts_with("invalid JSON body: "));
  CHECK(complaint("{\"a\":\"\xFF\"}").starts_with("invalid JSON body: "));
  CHECK(complaint("[1e999]").starts_with("invalid JSON body: "));
  CHECK(complaint("nan").starts_with("invalid JSON body: "));
}

TEST_CASE("JSON nests 64 deep and no deeper") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK(complaint(nested(64)) == "none");
  CHECK(complaint(nested(65)) == "invalid JSON body: nested deeper than 64");
  CHECK(complaint(std::string(1000000, '[')) == "invalid JSON body: nested deeper than 64");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  CHECK(complaint(objects) == "invalid JSON body: nested deeper than 64");
}

TEST_CASE("fields are read by kind, and unknown ones ignored") {
  const auto json = parse_json(
      R"({"s":"x","n":-5,"b":true,"l":["a","b"],"m":{"k":"v"},"o":{"i":1},"null":null,"z":0})");
  REQUIRE(json);
  JsonReader reader(*json, "spec");
  CHECK(reader.text("s") == "x");
  CHECK(reader.integer("n") == -5);
  CHECK(reader.flag("b") == true);
  CHECK(reader.texts("l") == std::vector<std::string>{"a", "b"});
  CHECK(reader.text_map("m") == std::map<std::string, std::string>{{"k", "v"}});
  REQUIRE(reader.object("o") != nullptr);
  CHECK(reader.elements("l").size() == 2);
  CHECK_FALSE(reader.has("null"));
  CHECK(reader.text("null") == std::nullopt);
  CHECK(reader.text("none") == std::nullopt);
  CHECK(reader.path_of("cpus") == "spec.cpus");
  CHECK(reader.finish());
}

TEST_CASE("the first field of a wrong kind is named with its path") {
  const auto problem = [](std::string_view text, const auto& read) {
    const auto json = parse_json(text);
    REQUIRE(json);
    JsonReader reader(*json, "spec");
    read(reader);
    const auto done = reader.finish();
    REQUIRE_FALSE(done);
    CHECK(done.error().code == ErrorCode::invalid_argument);
    return done.error().message;
  };
  CHECK(problem(R"({"a":1})", [](JsonReader& r) { r.text("a"); }) == "spec.a: must be a string");
  CHECK(problem(R"({"a":1.5})", [](JsonReader& r) { r.integer("a"); }) ==
        "spec.a: must be a whole number");
  CHECK(problem(R"({"a":18446744073709551615})", [](JsonReader& r) { r.integer("a"); }) ==
        "spec.a: must be a whole number");
  CHECK(problem(R"({"a":"true"})", [](JsonReader& r) { r.flag("a"); }) ==
        "spec.a: must be true or false");
  CHECK(problem(R"({"a":"x"})", [](JsonReader& r) { r.texts("a"); }) == "spec.a: must be a list");
  CHECK(problem(R"({"a":["x",1]})", [](JsonReader& r) { r.texts("a"); }) ==
        "spec.a: must be a list of strings");
  CHECK(problem(R"({"a":[]})", [](JsonReader& r) { r.object("a"); }) ==
        "spec.a: must be an object");
  CHECK(problem(R"({"a":{"b":1}})", [](JsonReader& r) { r.text_map("a"); }) ==
        "spec.a.b: must be a string");
  CHECK(problem("[]", [](JsonReader& r) { r.text("a"); }) == "spec: must be an object");
  CHECK(problem(R"({"a":1,"b":1})", [](JsonReader& r) {
          r.text("a");
          r.text("b");
          r.complain("c", "is odd");
        }) == "spec.a: must be a string");
}

TEST_CASE("the whole range of whole numbers is read") {
  const auto json = parse_json(R"({"a":9223372036854775807,"b":-9223372036854775808})");
  JsonReader reader(*json, "");
  CHECK(reader.integer("a") == std::numeric_limits<std::int64_t>::max());
  CHECK(reader.integer("b") == std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("a log line is one line, with values quoted where needed") {
  std::ostringstream out;
  const FakeClock clock;
  StreamLog log(out, clock, LogFormat::text, LogLevel::info);
  log.debug("not this");
  log.info("two\nlines\x1b[2J", {{"plain", "a/b:c"}, {"blank", "a b"}, {"empty", ""}});
  log.error("x", {{"evil", "\x1b[31m\n\"=\xFF"}});
  CHECK(out.str() ==
        "2024-12-18T00:00:00Z info two lines [2J plain=a/b:c blank=\"a b\" empty=\"\"\n"
        "2024-12-18T00:00:00Z error x evil=\"\\x1b[31m\\n\\\"=\\xff\"\n");
}

TEST_CASE("a log can be one JSON object a line") {
  std::ostringstream out;
  const FakeClock clock;
  StreamLog log(out, clock, LogFormat::json, LogLevel::debug);
  log.warning("a\nb\xFF", {{"k", "v \"x\""}});
  CHECK(out.str() ==
        "{\"time\":\"2024-12-18T00:00:00Z\",\"level\":\"warning\","
        "\"message\":\"a\\nb\xEF\xBF\xBD\",\"k\":\"v \\\"x\\\"\"}\n");
}

TEST_CASE("a problem that lasts is told once a minute, with how often it was left out") {
  std::ostringstream out;
  FakeClock clock;
  StreamLog stream(out, clock, LogFormat::text, LogLevel::info);
  QuietLog log(stream, clock);
  for (int second = 0; second < 61; ++second) {
    log.error("the disk is full", {{"vm", "a"}});
    if (second == 30) log.error("the disk is full", {{"vm", "b"}});
    if (second % 30 == 0) log.info("news");
    clock.move(1s);
  }
  CHECK(out.str() ==
        "2024-12-18T00:00:00Z error the disk is full vm=a\n"
        "2024-12-18T00:00:00Z info news\n"
        "2024-12-18T00:00:30Z error the disk is full vm=b\n"
        "2024-12-18T00:00:30Z info news\n"
        "2024-12-18T00:01:00Z error the disk is full (59 times more since it was last said) vm=a\n"
        "2024-12-18T00:01:00Z info news\n");
}

TEST_CASE("what a log leaves out is remembered in bounds") {
  std::ostringstream out;
  FakeClock clock;
  StreamLog stream(out, clock, LogFormat::text, LogLevel::info);
  QuietLog log(stream, clock);
  log.warning("again");
  log.warning("again");
  for (int i = 0; i < 1000; ++i) log.warning(std::to_string(i));
  log.warning("again");
  const std::string text = out.str();
  // The bound was passed, so the first is told anew: too much rather than too little.
  CHECK(std::count(text.begin(), text.end(), '\n') == 1002);
}

TEST_CASE("a locked value is reached under its lock only") {
  Locked<std::vector<int>> numbers({1});
  numbers.with([](auto& list) { list.push_back(2); });
  const auto& same = numbers;
  CHECK(same.with([](const auto& list) { return list.size(); }) == 2);
}

TEST_CASE("the program knows its version and build") {
  CHECK_FALSE(version().empty());
  CHECK(build_id() == build_id());
  CHECK(build_id().size() == 40);
}

}  // namespace
}  // namespace fuse
