// What compiles, written anew from what was understood, compiles to the same.
#include "tests/fusefile/decompile.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "base/text.h"
#include "orchestrator/api/json.h"
#include "tests/fusefile/compiling.h"

namespace fuse {
namespace {

// Everything that a Fusefile leads to.
std::string outcome(const Fusefile& file) {
  const CompiledFusefile compiled = compile(file, "t");
  const auto sent = to_send(file, compiled, {}, {});
  REQUIRE(sent);
  return cat(render(compiled, CompileFormat::json), compiled.manifest,
             to_json(*sent).dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace));
}

void check_round_trip(const Fusefile& file) {
  const auto text = decompile(file);
  REQUIRE(text);
  INFO(*text);
  const ParsedFusefile again = parse_fusefile(*text);
  INFO(complaints_about(*text));
  REQUIRE(again.file);
  CHECK(decompile(*again.file).value_or("") == *text);
  CHECK(outcome(*again.file) == outcome(file));
}

TEST_CASE("every golden Fusefile that compiles does so again after decompiling") {
  std::size_t compiling = 0;
  for (const auto& dir : fs::directory_iterator(fs::path(FUSE_SOURCE_DIR) / "tests/golden")) {
    std::ifstream in(dir.path() / "Fusefile", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const ParsedFusefile parsed = parse_fusefile(text);
    if (!parsed.file || !decompile(*parsed.file)) continue;
    INFO(dir.path().filename().native());
    check_round_trip(*parsed.file);
    ++compiling;
  }
  CHECK(compiling >= 60);
}

// Makes up Fusefiles that keep every rule, with texts that YAML or a shell
// might trip over.
class Inventor {
 public:
  explicit Inventor(std::uint32_t seed) : random_(seed) {}

  Fusefile file() {
    Fusefile file;
    if (chance()) file.name = label();
    if (chance()) file.image = text();
    file.resources = resources();
    if (chance()) file.placement = {text(), {{label(), label()}, {"A.b_c", "9"}}};
    if (chance()) file.cache_enabled = chance();
    if (chance()) file.env = env("VAR_");
    file.build = some<Fusefile::Step>([this] { return step(); });
    if (chance()) file.run = filled();
    if (chance()) file.run = some_texts(filled());
    if (chance()) file.services = {{text(), service()}, {"db", service()}};
    file.files = some<Fusefile::FileEntry>([this] { return entry(); });
    if (chance()) file.copy = {{text_without_line_end(), cat("to/", label())}};
    if (chance()) file.workspace = cat("/", label(), "/it's");
    if (chance()) file.expose = {{number(1, 65535), label()}, {0, ""}};
    if (!file.expose.empty()) file.expose[1].port = file.expose[0].port % 65535 + 1;
    if (chance()) file.healthcheck = healthcheck();
    if (chance()) file.desktop = Fusefile::Desktop{number(320, 3840), number(320, 3840)};
    if (chance()) file.secrets = some_texts(filled());
    if (chance()) file.startup_timeout = time(1);
    return file;
  }

 private:
  std::int32_t number(std::int32_t least, std::int32_t most) {
    return std::uniform_int_distribution<std::int32_t>(least, most)(random_);
  }
  bool chance() { return number(0, 1) == 1; }
  std::chrono::nanoseconds time(std::int64_t least) {
    const std::int64_t most = std::numeric_limits<std::int64_t>::max() >> number(1, 50);
    return std::chrono::nanoseconds(
        std::uniform_int_distribution<std::int64_t>(least, std::max(least, most))(random_));
  }

  std::string label() { return cat("l", number(0, 1'000'000), chance() ? "-x" : ""); }
  std::string text() {
    constexpr auto parts = std::to_array<std::string_view>(
        {"a",  "1", "0x1F", "~",  "null", "yes", "no", "12:30",  "2024-01-01", " ",     "  ", "\n",
         "\t", ":", ": ",   " #", "#",    "- ",  "? ", "'",      "\"",         "\\",    "|",  ">",
         "%",  "@", "`",    "&",  "*",    "!",   "<<", "---",    "...",        "{",     "}",  "[",
         "]",  ",", "\r",   "\1", "\x7F", "é",   "🚀",  "\u2028", "\u0085",     "\uFEFF"});
    std::string out;
    for (std::int32_t count = number(0, 6); count > 0; --count) {
      out +=
          parts[static_cast<std::size_t>(number(0, static_cast<std::int32_t>(parts.size()) - 1))];
    }
    return out;
  }
  std::string filled() { return text() + "x"; }
  std::string text_without_line_end() {
    std::string out = filled();
    std::erase(out, '\n');
    return out;
  }
  template <class T, class Make>
  std::vector<T> some(Make make) {
    std::vector<T> out;
    for (std::int32_t count = number(0, 3); count > 0; --count) out.push_back(make());
    return out;
  }
  std::vector<std::string> some_texts(std::string first) {
    auto out = some<std::string>([this] { return filled(); });
    out.push_back(std::move(first));
    return out;
  }

  Fusefile::Resources resources() {
    Fusefile::Resources out;
    out.cpus = chance() ? number(0, 2'000'000) : 0;
    out.memory_mib = number(0, std::numeric_limits<std::int32_t>::max());
    out.storage_mib = chance() ? number(0, 3000) : 0;
    out.gpu = number(1, 8);
    if (chance()) out.gpu_kind = "h100";
    if (chance()) out.gpu_profile = cat(number(1, 7), "g.", number(1, 900), "gb");
    if (chance()) out.region = text();
    if (chance()) out.max_runtime = time(1'000'000'000);
    if (chance()) out.idle_timeout = time(60'000'000'000);
    return out;
  }
  Fusefile::EnvValue env_value() {
    return chance() ? Fusefile::EnvValue{filled(), ""} : Fusefile::EnvValue{"", filled()};
  }
  Fusefile::Env env(std::string_view prefix) {
    return {{cat(prefix, number(0, 99)), env_value()}, {cat(prefix, "_"), env_value()}};
  }
  Fusefile::Step step() {
    Fusefile::Step out;
    out.run = filled();
    if (chance()) out.workdir = text_without_line_end();
    if (chance()) out.cache = true;
    if (chance()) out.inputs = {cat("in", filled())};
    return out;
  }
  Fusefile::Service service() {
    Fusefile::Service out;
    out.image = filled();
    out.ports = some<std::int32_t>([this] { return number(1, 65535); });
    if (chance()) out.env = {{cat("n", text()), env_value()}};
    if (chance()) out.command = some_texts(text());
    if (chance()) out.restart = "unless-stopped";
    if (chance()) out.healthcheck.emplace();
    if (out.healthcheck && chance()) *out.healthcheck = {some_texts(text()), text(), text(), -3};
    if (chance()) out.depends_on = {text()};
    return out;
  }
  Fusefile::FileEntry entry() {
    Fusefile::FileEntry out;
    out.path = cat("dir ", ++files_, "/", text_without_line_end());
    if (chance()) {
      out.content = text();
    } else {
      out.source = text_without_line_end();
    }
    if (chance()) out.mode = "0755";
    return out;
  }
  Fusefile::Healthcheck healthcheck() {
    Fusefile::Healthcheck out;
    if (chance()) {
      out.http = Fusefile::HttpProbe{number(1, 65535), cat("/", text())};
    } else {
      out.exec = some_texts(filled());
    }
    if (chance()) out.timeout = time(1);
    if (chance()) out.interval = out.timeout + std::chrono::nanoseconds(1);
    out.retries = number(0, 5);
    if (chance()) out.start_period = time(1);
    return out;
  }

  std::mt19937 random_;
  int files_ = 0;
};

TEST_CASE("made-up Fusefiles of every shape survive being written and read") {
  for (std::uint32_t seed = 1; seed <= 400; ++seed) {
    INFO("seed " << seed);
    check_round_trip(Inventor(seed).file());
  }
}

}  // namespace
}  // namespace fuse
