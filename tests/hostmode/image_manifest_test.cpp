#include "hostmode/image_manifest.h"

#include "base/text.h"
#include "tests/catch.h"

namespace fuse {
namespace {

ImageManifest full() {
  ImageManifest manifest;
  manifest.name = "team/cuda-12";
  manifest.boot = "kernel";
  manifest.disk = BlobRef{std::string(64, 'a'), 1000};
  manifest.disk_bytes = 4096;
  manifest.kernel = BlobRef{std::string(64, 'b'), 200};
  manifest.direct_kernel = BlobRef{std::string(64, 'e'), 500};
  manifest.modules = BlobRef{std::string(64, 'c'), 30};
  manifest.init = "/sbin/init";
  manifest.os = "debian 12";
  manifest.arch = "amd64";
  manifest.kernel_version = "6.1.0-57-cloud-amd64";
  manifest.driver_branch = "580";
  manifest.agent = "host";
  manifest.built_by = "fuse 0.1.0";
  manifest.created = "2026-01-02T03:04:05Z";
  return manifest;
}

std::string with(std::string text, std::string_view old, std::string_view replacement) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), replacement);
}

std::string refusal(const std::string& text) {
  const auto parsed = parse_image_manifest(text);
  return parsed ? "taken" : parsed.error().message;
}

TEST_CASE("a manifest reads back as it was written") {
  const ImageManifest manifest = full();
  const auto read = parse_image_manifest(to_text(manifest));
  REQUIRE(read);
  CHECK(to_text(*read) == to_text(manifest));
  CHECK(read->disk == manifest.disk);
  CHECK(read->direct_kernel == manifest.direct_kernel);
  CHECK(read->root == std::nullopt);
  CHECK(read->size() == 1730);
  CHECK(read->disk_bytes == 4096);
  CHECK(read->init == "/sbin/init");
}

TEST_CASE("an image's digest is of its files and its way to start, not of its name") {
  ImageManifest other = full();
  other.name = "other";
  other.created = "2030-01-01T00:00:00Z";
  CHECK(other.sha256() == full().sha256());
  other.init.clear();
  CHECK(other.sha256() != full().sha256());
  other = full();
  other.kernel->sha256 = std::string(64, 'd');
  CHECK(other.sha256() != full().sha256());
}

TEST_CASE("what is no manifest of ours is refused in words") {
  const std::string good = to_text(full());
  CHECK(refusal("") == "not an image manifest: invalid JSON");
  CHECK(refusal("{}") == "not an image manifest: it has no schema number");
  CHECK(refusal("[]") == "not an image manifest: it has no schema number");
  CHECK(refusal(with(good, "\"schema\": 1", "\"schema\": 2")) ==
        "image manifest of schema 2, but this program knows only up to 1");
}

TEST_CASE("a digest becomes a file's name, so nothing else is taken for one") {
  const std::string good = to_text(full());
  const std::string digest(64, 'a');
  for (const std::string& bad : {std::string("../../../etc/passwd"), std::string(63, 'a'),
                                 std::string(64, 'A'), std::string(64, '/'), std::string()}) {
    const std::string said = refusal(with(good, digest, bad));
    CHECK(said.find("sha256 is not a digest") != std::string::npos);
  }
  CHECK(refusal(with(good, "\"size\": 200", "\"size\": -1")).find("negative") != std::string::npos);
}

}  // namespace
}  // namespace fuse
