#include "base/units.h"

#include <chrono>
#include <limits>
#include <string>

#include "base/quote.h"
#include "base/text.h"
#include "tests/catch.h"

namespace fuse {
namespace {

using namespace std::chrono_literals;

std::string size_of(std::string_view text) {
  const auto size = parse_size_mib(text);
  return size ? std::to_string(*size) : size.error().message;
}

std::string duration_of(std::string_view text) {
  const auto duration = parse_duration(text);
  return duration ? to_string(*duration) : duration.error().message;
}

TEST_CASE("every unit of a size is binary and may be written in any case") {
  for (const char* mib : {"512M", "512MB", "512MiB", "512m", "512mib", " 512 MB\t", "512\tMb"}) {
    CHECK(size_of(mib) == "512");
  }
  CHECK(size_of("2GB") == "2048");
  CHECK(size_of("2GiB") == "2048");
  CHECK(size_of("1.5GiB") == "1536");
  CHECK(size_of("1T") == "1048576");
  CHECK(size_of("0.5tib") == "524288");
  CHECK(size_of("0GB") == "0");
  CHECK(size_of("2147483647M") == "2147483647");
}

TEST_CASE("a size that is not a number and a unit is refused with what is expected") {
  const std::string expected =
      " (expected a number and a unit, e.g. \"512MB\", \"2GB\", \"1.5GiB\")";
  for (const char* text : {"3X", "64", "", "GB", ".5GB", "1.GB", "-1GB", "+1GB", "1e3MB", "1 0GB",
                           "1GBB", "1KB", "1,5GB", "0x1GB"}) {
    CHECK(size_of(text) == cat("invalid size ", in_quotes(text), expected));
  }
}

TEST_CASE("a size is a whole number of MiB that fits the wire") {
  CHECK(size_of("0.5MB") == "invalid size \"0.5MB\": must be a whole number of MiB");
  CHECK(size_of("1.1GB") == "invalid size \"1.1GB\": must be a whole number of MiB");
  CHECK(size_of("2147483648M") == "invalid size \"2147483648M\": value too large");
  CHECK(size_of("2048T") == "invalid size \"2048T\": value too large");
  CHECK(size_of(std::string(400, '9') + "T").ends_with(": value too large"));
  CHECK(size_of("0." + std::string(400, '0') + "1G").ends_with("a whole number of MiB"));
}

TEST_CASE("durations are sequences of numbers with units") {
  CHECK(duration_of("1h30m") == "1h30m0s");
  CHECK(duration_of("1.5h") == "1h30m0s");
  CHECK(duration_of("90s") == "1m30s");
  CHECK(duration_of(".5s") == "500ms");
  CHECK(duration_of("5.s") == "5s");
  CHECK(duration_of("-2ms") == "-2ms");
  CHECK(duration_of("+3us") == "3\xC2\xB5s");
  CHECK(duration_of("3\xC2\xB5s") == "3\xC2\xB5s");
  CHECK(duration_of("3\xCE\xBCs") == "3\xC2\xB5s");
  CHECK(duration_of("7ns") == "7ns");
  CHECK(duration_of("1s1s") == "2s");
  CHECK(duration_of("1.000000001s") == "1.000000001s");
  for (const char* zero : {"0", "+0", "-0", "0s", "0h0m"}) CHECK(duration_of(zero) == "0s");
}

TEST_CASE("what is no duration is refused in the words of the wire") {
  CHECK(duration_of("90") == "time: missing unit in duration \"90\"");
  CHECK(duration_of("forever") == "time: invalid duration \"forever\"");
  CHECK(duration_of("1d") == "time: unknown unit \"d\" in duration \"1d\"");
  CHECK(duration_of("1h 30m") == "time: unknown unit \"h \" in duration \"1h 30m\"");
  CHECK(duration_of("") == "time: invalid duration \"\"");
  CHECK(duration_of("-") == "time: invalid duration \"-\"");
  CHECK(duration_of(".s") == "time: invalid duration \".s\"");
  CHECK(duration_of("1\xC3\xA9") ==
        "time: unknown unit \"\\xc3\\xa9\" in duration \"1\\xc3\\xa9\"");
}

TEST_CASE("durations end where 64-bit nanoseconds end") {
  CHECK(duration_of("9223372036854775807ns") == "2562047h47m16.854775807s");
  CHECK(parse_duration("-9223372036854775808ns").value().count() ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(duration_of("-9223372036854775808ns") == "-2562047h47m16.854775808s");
  for (const char* text :
       {"9223372036854775808ns", "3000000h", "9999999999999999999999h", "2562047h48m"}) {
    CHECK(duration_of(text) == cat("time: invalid duration \"", text, "\""));
  }
  CHECK(duration_of("0.9223372036854775808999h") == "55m20.413933267s");
}

TEST_CASE("durations are written out as the wire writes them") {
  CHECK(to_string(0ns) == "0s");
  CHECK(to_string(90s) == "1m30s");
  CHECK(to_string(1500ms) == "1.5s");
  CHECK(to_string(300ms) == "300ms");
  CHECK(to_string(1100ns) == "1.1\xC2\xB5s");
  CHECK(to_string(60s) == "1m0s");
  CHECK(to_string(3600s) == "1h0m0s");
  CHECK(to_string(-90s) == "-1m30s");
}

TEST_CASE("durations for people show the two largest parts") {
  CHECK(human_duration(42ms) == "42 ms");
  CHECK(human_duration(2900ms) == "2.9 s");
  CHECK(human_duration(80s) == "1 m 20 s");
  CHECK(human_duration(3h + 5min) == "3 h 5 m");
  CHECK(human_duration(49h) == "2 d 1 h");
  CHECK(human_duration(-80s) == "-1 m 20 s");
}

TEST_CASE("sizes for people are binary with one digit after the point") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(512ULL << 20U) == "512 MiB");
  CHECK(human_bytes(1503238553) == "1.3 GiB");
  CHECK(human_bytes(1610612736) == "1.5 GiB");
  CHECK(human_bytes(std::numeric_limits<std::uint64_t>::max()) == "16383.9 PiB");
}

TEST_CASE("quoting shows what would not show") {
  CHECK(in_quotes("plain") == "\"plain\"");
  CHECK(in_quotes("a\"b\\c\n\t\x01\x7f") == R"("a\"b\\c\n\t\x01\x7f")");
  CHECK(in_quotes("\xC3\xA9\xE2\x80\xA8\xEF\xBB\xBF") == "\"\xC3\xA9\\u2028\\ufeff\"");
  CHECK(in_quotes("\xF0\x9F\x98\x80\xC3(") == "\"\xF0\x9F\x98\x80\\xc3(\"");
}

}  // namespace
}  // namespace fuse
