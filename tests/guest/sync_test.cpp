#include "guest/channel/sync.h"

#include <algorithm>

#include "guest/channel/frame.h"
#include "tests/catch.h"
#include "tests/guest/random.h"

namespace fuse {
namespace {

struct Scanned {
  std::string since_mark{};  // ordinary bytes behind the last sync message
  std::vector<std::string> nonces{};
};

Scanned scan_in_pieces(std::string_view bytes, RandomBytes& random) {
  SyncScanner scanner;
  Scanned out;
  while (!bytes.empty()) {
    const std::size_t size =
        std::min(bytes.size(), 1 + random.up_to(random.up_to(3) == 0 ? 900 : 3));
    scanner.feed(bytes.substr(0, size));
    bytes.remove_prefix(size);
    while (auto piece = scanner.next()) {
      if (piece->nonce) {
        out.since_mark.clear();
        out.nonces.push_back(*piece->nonce);
      } else {
        out.since_mark += piece->bytes;
      }
    }
  }
  return out;
}

std::string some_frames(RandomBytes& random) {
  std::string bytes;
  for (std::size_t i = random.up_to(5); i > 0; --i) {
    append_frame(bytes, {.type = FrameType::data,
                         .stream = static_cast<std::uint32_t>(random.up_to(0xFFFFFFFFU)),
                         .payload = random.of_size(random.up_to(300))});
  }
  return bytes;
}

TEST_CASE("the mark has high bytes only, and its first but once") {
  REQUIRE(sync_mark.size() == 16);
  CHECK(std::ranges::all_of(sync_mark,
                            [](char c) { return (static_cast<unsigned char>(c) & 0x80U) != 0; }));
  CHECK(std::ranges::count(sync_mark, sync_mark.front()) == 1);
}

TEST_CASE("a nonce has low bytes only and is not the one of a restart") {
  const std::string nonce = new_sync_nonce();
  CHECK(nonce.size() == sync_nonce_size);
  CHECK(std::ranges::all_of(nonce,
                            [](char c) { return (static_cast<unsigned char>(c) & 0x80U) == 0; }));
  CHECK(nonce != new_sync_nonce());
  CHECK(nonce != restart_nonce());
}

TEST_CASE("frames without a mark pass through the scanner unchanged and at once") {
  RandomBytes random(11);
  for (int round = 0; round < 500; ++round) {
    const std::string frames = some_frames(random);
    const Scanned scanned = scan_in_pieces(frames, random);
    CHECK(scanned.nonces.empty());
    CHECK(scanned.since_mark == frames);
  }
}

TEST_CASE("a sync message is found behind any cut of an older connection") {
  RandomBytes random(12);
  for (int round = 0; round < 2000; ++round) {
    const std::string old = some_frames(random);
    const std::string nonce = new_sync_nonce();
    const std::string fresh = some_frames(random);
    const std::string bytes = old.substr(0, random.up_to(old.size())) + sync_message(nonce) + fresh;
    const Scanned scanned = scan_in_pieces(bytes, random);
    REQUIRE(scanned.nonces == std::vector<std::string>{nonce});
    CHECK(scanned.since_mark == fresh);
  }
}

TEST_CASE("a sync message is found behind any cut of another one") {
  for (std::size_t cut = 1; cut < 32; ++cut) {
    RandomBytes random(static_cast<std::uint32_t>(cut));
    const std::string nonce = new_sync_nonce();
    const std::string bytes =
        sync_message(new_sync_nonce()).substr(0, cut) + sync_message(nonce) + "x";
    const Scanned scanned = scan_in_pieces(bytes, random);
    REQUIRE_FALSE(scanned.nonces.empty());
    CHECK(scanned.nonces.back() == nonce);
    CHECK(scanned.since_mark == "x");
  }
}

TEST_CASE("no byte of a cut frame and the mark behind it makes up a frame") {
  // A frame that lacks between 1 and 15 bytes when the connection ends: the mark
  // must not complete it.
  for (std::size_t missing = 1; missing < 16; ++missing) {
    std::string frame;
    append_frame(
        frame,
        {.type = FrameType::data, .flags = flag_end, .stream = 1, .payload = std::string(40, 'a')});
    SyncScanner scanner;
    scanner.feed(frame.substr(0, frame.size() - missing) + sync_message(new_sync_nonce()));
    FrameDecoder decoder;
    while (auto piece = scanner.next()) {
      if (piece->nonce) break;
      decoder.feed(piece->bytes);
      const auto decoded = decoder.next();
      REQUIRE(decoded);
      CHECK_FALSE(*decoded);
    }
  }
}

}  // namespace
}  // namespace fuse
