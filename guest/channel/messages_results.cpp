#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/text.h"
#include "guest/channel/json_text.h"
#include "guest/channel/messages.h"
#include "orchestrator/api/json.h"

namespace fuse {

using channel_detail::ascii_json_of_ours;
using channel_detail::int32_of;
using channel_detail::text_of;
using nlohmann::json;

namespace channel_detail {

// nlohmann throws on invalid UTF-8, and here is where it is caught.
Result<std::string> ascii_json(const json& value) {
  try {
    return value.dump(-1, ' ', true, json::error_handler_t::strict);
  } catch (const json::exception&) {
    return Error{ErrorCode::invalid_argument, "a text for the guest is not valid UTF-8"};
  }
}

std::string ascii_json_of_ours(const json& value) {
  return value.dump(-1, ' ', true, json::error_handler_t::replace);
}

std::int32_t int32_of(JsonReader& reader, std::string_view key) {
  using Limits = std::numeric_limits<std::int32_t>;
  const std::int64_t number = reader.integer(key).value_or(0);
  if (number < Limits::min() || number > Limits::max()) reader.complain(key, "is out of range");
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(number, Limits::min(), Limits::max()));
}

std::string text_of(JsonReader& reader, std::string_view key) {
  return reader.text(key).value_or(std::string());
}

}  // namespace channel_detail

namespace {

constexpr std::array error_codes = {
    ErrorCode::not_found,        ErrorCode::route_not_found,   ErrorCode::conflict,
    ErrorCode::invalid_argument, ErrorCode::payload_too_large, ErrorCode::unauthorized,
    ErrorCode::forbidden,        ErrorCode::unavailable,       ErrorCode::unimplemented,
    ErrorCode::internal,         ErrorCode::unreachable};

// What is kept of an error's message: six ASCII bytes at most for each of its
// own, below a frame's payload.
constexpr std::size_t most_message = 8U << 10U;

json json_of(const GuestJob& job) {
  return {{"key", job.key}, {"boot_id", job.boot_id}, {"status", to_json(job.status)}};
}

Result<GuestJob> read_job(JsonReader& reader) {
  GuestJob job{.key = text_of(reader, "key"), .boot_id = text_of(reader, "boot_id")};
  const json* const status = reader.object("status");
  if (auto done = reader.finish(); !done) return done.error();
  if (status == nullptr) return Error{ErrorCode::invalid_argument, "a job without a status"};
  auto parsed = parse_job_status(*status);
  if (!parsed) return parsed.error();
  job.status = *std::move(parsed);
  return job;
}

std::uint64_t offset_of(JsonReader& reader, std::string_view key) {
  const std::int64_t number = reader.integer(key).value_or(0);
  if (number < 0) reader.complain(key, "must not be negative");
  return static_cast<std::uint64_t>(std::max<std::int64_t>(number, 0));
}

}  // namespace

std::string hello_text(const GuestHello& hello) {
  json out = {{"protocol", hello.protocol}, {"version", hello.version},
              {"build", hello.build},       {"boot_id", hello.boot_id},
              {"hostname", hello.hostname}, {"uptime_ms", hello.uptime.count()}};
  if (hello.job) out["job"] = json_of(*hello.job);
  return ascii_json_of_ours(out);
}

Result<GuestHello> parse_hello(std::string_view text) {
  const auto value = parse_json(text);
  if (!value) return value.error();
  JsonReader reader(*value, "");
  GuestHello hello{.protocol = int32_of(reader, "protocol"),
                   .version = text_of(reader, "version"),
                   .build = text_of(reader, "build"),
                   .boot_id = text_of(reader, "boot_id"),
                   .hostname = text_of(reader, "hostname"),
                   .uptime = std::chrono::milliseconds(reader.integer("uptime_ms").value_or(0))};
  if (const json* const job = reader.object("job")) {
    JsonReader inner(*job, "job");
    auto parsed = read_job(inner);
    if (!parsed) return parsed.error();
    hello.job = *std::move(parsed);
  }
  if (auto done = reader.finish(); !done) return done.error();
  return hello;
}

std::string exec_result_text(const GuestExecResult& result) {
  return ascii_json_of_ours({{"code", result.status.code},
                             {"signal", result.status.signal},
                             {"timed_out", result.timed_out}});
}

Result<GuestExecResult> parse_guest_exec_result(std::string_view text) {
  const auto value = parse_json(text);
  if (!value) return value.error();
  JsonReader reader(*value, "");
  GuestExecResult result;
  result.status.code = int32_of(reader, "code");
  result.status.signal = int32_of(reader, "signal");
  result.timed_out = reader.flag("timed_out").value_or(false);
  if (auto done = reader.finish(); !done) return done.error();
  return result;
}

std::string guest_job_text(const GuestJob& job) {
  return ascii_json_of_ours(json_of(job));
}

Result<GuestJob> parse_guest_job(std::string_view text) {
  const auto value = parse_json(text);
  if (!value) return value.error();
  JsonReader reader(*value, "");
  return read_job(reader);
}

std::string log_range_text(const LogRange& range) {
  return ascii_json_of_ours({{"begin", range.begin}, {"end", range.end}});
}

Result<LogRange> parse_log_range(std::string_view text) {
  const auto value = parse_json(text);
  if (!value) return value.error();
  JsonReader reader(*value, "");
  const LogRange range{.begin = offset_of(reader, "begin"), .end = offset_of(reader, "end")};
  if (auto done = reader.finish(); !done) return done.error();
  return range;
}

std::string error_text(const Error& error) {
  return ascii_json_of_ours({{"code", to_string(error.code)},
                             {"message", valid_utf8(error.message.substr(0, most_message))}});
}

Error parse_error_text(std::string_view text) {
  Error unreadable{ErrorCode::internal, "the guest answered with an error it did not name"};
  const auto value = parse_json(text);
  if (!value) return unreadable;
  JsonReader reader(*value, "");
  const auto name = reader.text("code");
  const auto message = reader.text("message");
  if (!name || !message) return unreadable;
  const auto* const code =
      std::ranges::find(error_codes, *name, [](ErrorCode known) { return to_string(known); });
  return {code == error_codes.end() ? ErrorCode::internal : *code, *message};
}

}  // namespace fuse
