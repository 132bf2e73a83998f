#include "cmd/tar.h"

#include <array>
#include <random>

#include "base/text.h"
#include "tests/catch.h"
#include "tests/cmd/local_guest.h"

namespace fuse::cmd {

namespace {

// What an archive holds, a line an entry.
class Listing final : public TarSink {
 public:
  std::vector<std::string> lines{};
  std::optional<std::string> refused{};  // the entry at which it fails

  Result<void> entry(const TarEntry& entry) override {
    if (refused && entry.path == *refused) return Error{ErrorCode::internal, "not that one"};
    constexpr std::array<std::string_view, 5> types = {"file", "folder", "symlink", "hardlink",
                                                       "other"};
    std::string line = cat(types[static_cast<std::size_t>(entry.type)], " ", entry.path);
    if (!entry.target.empty()) line += cat(" -> ", entry.target);
    lines.push_back(cat(line, " ", static_cast<int>(entry.mode)));
    return {};
  }
  Result<void> data(std::string_view bytes) override {
    lines.back() += cat(lines.back().find(" = ") == std::string::npos ? " = " : "", bytes);
    return {};
  }
  Result<void> end() override {
    lines.back() += ".";
    return {};
  }
};

std::string file(const std::string& path, const std::string& bytes, std::uint32_t mode = 0644) {
  return cat(tar_header({.path = path, .mode = mode, .size = bytes.size()}), bytes,
             tar_padding(bytes.size()));
}

// The entries of an archive, read in pieces of this size.
std::vector<std::string> entries(const std::string& archive, std::size_t piece) {
  Listing listing;
  TarReader reader(listing);
  for (std::size_t at = 0; at < archive.size(); at += piece) {
    const auto fed = reader.feed(std::string_view(archive).substr(at, piece));
    if (!fed) return {cat("error: ", fed.error().message)};
  }
  if (!reader.is_complete()) listing.lines.emplace_back("broke off");
  return listing.lines;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("an archive holds files, folders and links, in pieces of any size") {
  const std::string archive =
      cat(tar_header({.type = TarEntry::Type::folder, .path = "./a/", .mode = 0750}),
          file("./a/one\ntwo", "bytes", 0600), file("empty", ""),
          tar_header({.type = TarEntry::Type::symlink, .path = "link", .target = "../x"}),
          tar_header({.type = TarEntry::Type::hardlink, .path = "hard", .target = "./a/one\ntwo"}),
          tar_end());
  const Texts expected = {"folder ./a/ 488", "file ./a/one\ntwo 384 = bytes.", "file empty 420.",
                          "symlink link -> ../x 0", "hardlink hard -> ./a/one\ntwo 0"};
  for (const std::size_t piece : {1UL, 7UL, 511UL, 512UL, 513UL, 100'000UL}) {
    CHECK(entries(archive, piece) == expected);
  }
}

TEST_CASE("names and targets of any length survive") {
  for (const std::size_t size : {99UL, 100UL, 101UL, 511UL, 512UL, 4096UL}) {
    const std::string name(size, 'n');
    const std::string target(size + 1, 't');
    const std::string archive =
        cat(tar_header({.type = TarEntry::Type::symlink, .path = name, .target = target}),
            file(name, "x"), tar_end());
    CHECK(entries(archive, 1000) ==
          Texts{cat("symlink ", name, " -> ", target, " 0"), cat("file ", name, " 420 = x.")});
  }
}

TEST_CASE("a file may be larger than octal digits can say") {
  const std::string header = tar_header({.path = "big", .size = 3ULL << 40U});
  struct Size final : TarSink {
    std::uint64_t size = 0;
    Result<void> entry(const TarEntry& entry) override {
      size = entry.size;
      return {};
    }
    Result<void> data(std::string_view /*bytes*/) override { return {}; }
    Result<void> end() override { return {}; }
  } sink;
  CHECK(TarReader(sink).feed(header));
  CHECK(sink.size == 3ULL << 40U);
}

TEST_CASE("what GNU tar writes in its other formats is read") {
  for (const std::string format : {"gnu", "pax", "ustar", "v7"}) {
    const std::string script =
        cat("set -e; d=$(mktemp -d); cd $d; umask 022; mkdir sub; printf hello >sub/file; ",
            "ln -s file sub/link; ",
            format == "gnu" || format == "pax" ? "n=$(printf %0200d 7); " : "n=7; ",
            "printf x >sub/$n; tar --format=", format, " --sort=name -c -f - sub; cd /; rm -r $d");
    const auto made = run_here({.cmd = {"sh", "-c", script}});
    REQUIRE(made.exit_code == 0);
    const std::string name =
        format == "gnu" || format == "pax" ? std::string(199, '0') + "7" : std::string("7");
    CHECK(entries(made.out, 333) == Texts{"folder sub/ 493", cat("file sub/", name, " 420 = x."),
                                          "file sub/file 420 = hello.",
                                          "symlink sub/link -> file 511"});
  }
}

TEST_CASE("tar reads what is written") {
  LocalSession session({"sh", "-c", "tar -tvf - | sed 's/ .* / /'"});
  const std::string archive =
      cat(tar_header({.type = TarEntry::Type::folder, .path = "a/", .mode = 0755}),
          file(cat("a/", std::string(150, 'n')), std::string(5000, 'b'), 0640), tar_end());
  REQUIRE(session.write({.payload = archive}));
  REQUIRE(session.write({}));
  std::string out;
  for (;;) {
    const auto frame = session.read();
    REQUIRE(frame);
    if (!*frame) break;
    if ((*frame)->type != AttachFrameType::exit) out += (*frame)->payload;
  }
  CHECK(out == cat("drwxr-xr-x a/\n-rw-r----- a/", std::string(150, 'n'), "\n"));
}

TEST_CASE("what is no archive is an error, wherever it goes wrong") {
  CHECK(entries(std::string(512, 'x'), 100) ==
        Texts{"error: what came is no archive: the sum of a header is wrong"});
  std::string bad_size = tar_header({.path = "a"});
  bad_size[124] = '9';
  CHECK(entries(bad_size, 100).front().starts_with("error: "));
  std::string huge_name = tar_header({.path = "././@LongLink", .size = 1ULL << 30U});
  huge_name[156] = 'L';
  CHECK(entries(huge_name, 100).front().starts_with("error: "));  // its sum is wrong, too
  const std::string whole = cat(file("a", "bytes"), tar_end());
  CHECK(entries(whole.substr(0, 515), 100).back() == "broke off");
  CHECK(entries("", 1) == Texts{"broke off"});
}

TEST_CASE("any change to an archive's bytes is read or refused, never more") {
  std::mt19937 random(7);
  const std::string archive =
      cat(file(std::string(300, 'n'), "bytes"),
          tar_header({.type = TarEntry::Type::symlink, .path = "l", .target = "t"}), tar_end());
  for (int i = 0; i < 3000; ++i) {
    std::string changed = archive;
    for (int n = 0; n < 3; ++n) changed[random() % changed.size()] = static_cast<char>(random());
    CHECK_NOTHROW(entries(changed, 1 + random() % 600));
  }
}

TEST_CASE("an error of who takes the entries ends the reading") {
  Listing listing;
  listing.refused = "b";
  TarReader reader(listing);
  const auto fed = reader.feed(cat(file("a", "x"), file("b", "y"), file("c", "z")));
  REQUIRE_FALSE(fed);
  CHECK(fed.error().message == "not that one");
  CHECK(listing.lines == Texts{"file a 420 = x."});
}

}  // namespace fuse::cmd
