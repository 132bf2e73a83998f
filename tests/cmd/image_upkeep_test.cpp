#include <ctime>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tests/cmd/world.h"
#include "tests/hostmode/image_fixture.h"

namespace fuse::cmd {

namespace {

// A command line on a store of images, with no background process.
struct ImageWorld : World {
  StoreFixture images{};

  ImageWorld() {
    variables["FUSE_IMAGES"] = (images.scratch.path() / "images").native();
    variables["XDG_STATE_HOME"] = (folder.path() / "state").native();
    variables["HOME"] = folder.path().native();
  }
  [[nodiscard]] std::string path_of(const BlobRef& blob) const {
    return images.store.blob_path(blob).native();
  }
};

}  // namespace

TEST_CASE("image verify tells what is whole and what is not, one image or all") {
  ImageWorld world;
  CHECK(world.fuse({"image", "verify"}) == success);
  CHECK(world.err.str().starts_with("there are no images in "));
  world.images.publish("good");
  const ImageManifest bad = world.images.publish("bad");
  fs::remove(world.images.store.blob_path(*bad.kernel));
  CHECK(world.fuse({"image", "verify", "good"}) == success);
  CHECK(world.out.str() == "good: whole\n");
  world.out.str("");
  CHECK(world.fuse({"image", "verify"}) == failed);
  CHECK(world.out.str() == cat("bad: ", world.path_of(*bad.kernel), " is missing\ngood: whole\n"));
  world.out.str("");
  CHECK(world.fuse({"image", "verify", "bad", "-o", "json"}) == failed);
  const auto json = nlohmann::json::parse(world.out.str());
  CHECK(json["images"][0]["name"] == "bad");
  CHECK(json["images"][0]["problems"].size() == 1);
  CHECK(world.fuse({"image", "verify", "other"}) == failed);
}

TEST_CASE("image verify of all goes on past a manifest that cannot be read") {
  ImageWorld world;
  world.images.publish("good");
  world.images.scratch.write("images/broken.json", "{");
  CHECK(world.fuse({"image", "verify"}) == failed);
  CHECK(world.out.str() ==
        "broken: base image 'broken': not an image manifest: invalid JSON\ngood: whole\n");
}

TEST_CASE("an image that fuse did not make is listed and verified as one that boots by firmware") {
  ImageWorld world;
  world.images.scratch.write("images/debian.qcow2", qcow2_header(std::uint64_t{1} << 30U));
  CHECK(world.fuse({"image", "list"}) == success);
  CHECK(world.out.str().find("debian   -    firmware   32 B   1 GiB") != std::string::npos);
  world.out.str("");
  CHECK(world.fuse({"image", "verify"}) == success);
  CHECK(world.out.str() == "debian: boots by firmware; its header is as it should be\n");
  world.out.str("");
  world.images.scratch.write("images/debian.qcow2", "nothing");
  CHECK(world.fuse({"image", "verify", "debian"}) == failed);
  CHECK(world.out.str().starts_with("debian: "));
}

TEST_CASE("image prune says what it would remove, and removes it") {
  ImageWorld world;
  world.images.publish("kept");
  const BlobRef old = world.images.blob(2048);
  const BlobRef fresh = world.images.blob(100);
  make_old(world.images.store.blob_path(old));
  CHECK(world.fuse({"image", "prune", "--dry-run"}) == success);
  CHECK(world.out.str() == cat("would remove  ", world.path_of(old), "  2 KiB\n"));
  CHECK(world.err.str() ==
        "1 more file is not needed but was used within the last hour: a VM may be starting\n"
        "would free 2 KiB\n");
  CHECK(fs::exists(world.path_of(old)));
  world.out.str("");
  CHECK(world.fuse({"image", "prune", "-o", "json"}) == success);
  const auto json = nlohmann::json::parse(world.out.str());
  CHECK(json["dry_run"] == false);
  CHECK(json["bytes"] == 2048);
  CHECK(json["removed"][0]["path"] == world.path_of(old));
  CHECK(json["kept_for_now"][0]["path"] == world.path_of(fresh));
  CHECK_FALSE(fs::exists(world.path_of(old)));
  CHECK(fs::exists(world.path_of(fresh)));
}

}  // namespace fuse::cmd
