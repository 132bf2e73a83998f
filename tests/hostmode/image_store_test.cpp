#include "hostmode/image_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include "base/fd.h"
#include "hostmode/image_files.h"
#include "tests/hostmode/image_fixture.h"

namespace fuse {
namespace {

std::string refusal(const ImageStore& store, const std::string& name) {
  const auto image = store.resolve(name);
  return image ? "resolved" : image.error().message;
}

TEST_CASE("a published image resolves to its files and an initramfs with our agent") {
  const StoreFixture images;
  const ImageManifest manifest = images.publish("team/micro");
  const auto image = images.store.resolve("team/micro");
  REQUIRE(image);
  CHECK(image->name == "team/micro");
  CHECK(image->kernel == images.store.blob_path(*manifest.kernel));
  CHECK(image->kernel_version == "6.1.0-test");
  CHECK_FALSE(image->disk);
  CHECK_FALSE(image->has_root);
  CHECK_FALSE(image->foreign);
  PosixHost host;
  const std::string initrd = host.read_file(image->initrd).value();
  const std::string agent = host.read_file(images.agent).value();
  CHECK(initrd.starts_with(host.read_file(images.store.blob_path(*manifest.modules)).value() +
                           host.read_file(images.store.blob_path(*manifest.root)).value()));
  CHECK(initrd.find(agent) != std::string::npos);
}

TEST_CASE("a kernel that can be entered at once is started instead of the packed one") {
  const StoreFixture images;
  ImageManifest manifest = images.manifest("micro");
  manifest.direct_kernel = images.blob(4000);
  REQUIRE(images.store.publish(manifest));
  const auto image = images.store.resolve("micro");
  REQUIRE(image);
  CHECK(image->kernel == images.store.blob_path(*manifest.direct_kernel));
  fs::remove(image->kernel);
  CHECK(refusal(images.store, "micro") ==
        cat("base image 'micro' is unusable: ", image->kernel.native(),
            " is missing; bake it again"));
}

TEST_CASE("the initramfs is put together once a build of the agent and modules") {
  const StoreFixture images;
  images.publish("micro");
  const fs::path first = images.store.resolve("micro")->initrd;
  const auto written = fs::status(first);
  images.scratch.write("agent", "another agent");
  CHECK(images.store.resolve("micro")->initrd == first);
  CHECK(PosixHost().read_file(first)->find("another agent") == std::string::npos);

  const fs::path second = ImageStore(images.config("build-2")).resolve("micro")->initrd;
  CHECK(second != first);
  CHECK(PosixHost().read_file(second)->find("another agent") != std::string::npos);
  // A program that does not know its build is told by its bytes.
  const fs::path third = ImageStore(images.config("unknown")).resolve("micro")->initrd;
  images.scratch.write("agent", "a third agent");
  CHECK(ImageStore(images.config("unknown")).resolve("micro")->initrd != third);
}

TEST_CASE("many threads that resolve an image for the first time get the same whole initramfs") {
  const StoreFixture images;
  images.publish("micro");
  std::vector<std::string> seen(8);
  {
    std::vector<std::jthread> threads;
    for (std::string& bytes : seen) {
      threads.emplace_back([&] {
        const auto image = images.store.resolve("micro");
        if (image) bytes = PosixHost().read_file(image->initrd).value();
      });
    }
  }
  const std::string whole = PosixHost().read_file(images.store.resolve("micro")->initrd).value();
  for (const std::string& bytes : seen) CHECK(bytes == whole);
  CHECK(PosixHost().list_dir(images.store.dir() / "initrd")->size() == 1);
}

TEST_CASE("a name that is none is refused before anything is looked at") {
  const StoreFixture images;
  fs::create_directories(images.store.dir() / "sub");
  for (const std::string& name :
       {std::string("/etc/passwd"), std::string("~/x"), std::string("a\nb"), std::string("\x7f"),
        std::string("   "), std::string("../agent"), std::string("sub/../../agent"),
        std::string("a\0b", 3)}) {
    const auto image = images.store.resolve(name);
    REQUIRE_FALSE(image);
    CHECK(image.error().code == ErrorCode::invalid_argument);
    CHECK(image.error().message == cat("invalid base image name: '", name, "'"));
  }
}

TEST_CASE("a symlink that leads out of the folder is refused, one inside is followed") {
  const StoreFixture images;
  images.publish("real");
  const fs::path outside = images.scratch.write("outside/x.qcow2", qcow2_header(1 << 20));
  fs::create_directory_symlink(outside.parent_path(), images.store.dir() / "out");
  fs::create_symlink(outside, images.store.dir() / "file.qcow2");
  CHECK(refusal(images.store, "out/x") == "invalid base image name: 'out/x'");
  CHECK(refusal(images.store, "file") == "invalid base image name: 'file'");
  fs::create_symlink("real.json", images.store.dir() / "alias.json");
  const auto alias = images.store.resolve("alias");
  REQUIRE(alias);
  CHECK(alias->name == "alias");
}

TEST_CASE("an image that is not there is named with the place looked at") {
  const StoreFixture images;
  const std::string dir = images.store.dir().native();
  CHECK(images.store.resolve("cuda").error().code == ErrorCode::not_found);
  CHECK(refusal(images.store, "team/cuda") ==
        cat("base image 'team/cuda' not found at ", dir,
            "/team/cuda.qcow2; bake and place a rootfs there before use"));
  CHECK(refusal(images.store, "") == cat("base image 'default' not found at ", dir,
                                         "/base.qcow2; bake and place a rootfs there before use"));
}

TEST_CASE("without a name it is the configured root file system, else the image base") {
  const StoreFixture images;
  images.publish("base");
  CHECK(images.store.resolve("")->name == "base");
  ImageStoreConfig config = images.config("build-1");
  config.base_rootfs = images.scratch.path() / "root.qcow2";
  CHECK(refusal(ImageStore(config), "") == cat("base image 'default' not found at ",
                                               config.base_rootfs.native(),
                                               "; bake and place a rootfs there before use"));
  images.scratch.write("root.qcow2", qcow2_header(7 << 20));
  const auto image = ImageStore(config).resolve("");
  REQUIRE(image);
  CHECK(image->disk == config.base_rootfs);
  CHECK(image->disk_bytes == 7 << 20);
  CHECK(image->foreign);
}

TEST_CASE("a bare qcow2 is a foreign image that boots by itself") {
  const StoreFixture images;
  const fs::path disk = images.scratch.write("images/vendor/cuda.qcow2", qcow2_header(5ULL << 30U));
  const auto image = images.store.resolve("vendor/cuda");
  REQUIRE(image);
  CHECK(image->disk == disk);
  CHECK(image->disk_bytes == 5ULL << 30U);
  CHECK(image->kernel.empty());
  CHECK(image->initrd.empty());
  CHECK_FALSE(image->has_root);
  CHECK(image->foreign);
  images.scratch.write("images/text.qcow2", "not a disk");
  CHECK(refusal(images.store, "text") ==
        cat((images.store.dir() / "text.qcow2").native(), " is not a qcow2 file"));
}

TEST_CASE("an image whose files are missing or cut short is refused, not started") {
  const StoreFixture images;
  const ImageManifest manifest = images.publish("micro");
  const fs::path kernel = images.store.blob_path(*manifest.kernel);
  const std::string bytes = PosixHost().read_file(kernel).value();
  fs::permissions(kernel, fs::perms::owner_write, fs::perm_options::add);
  fs::resize_file(kernel, 10);
  CHECK(refusal(images.store, "micro") == cat("base image 'micro' is unusable: ", kernel.native(),
                                              " has 10 bytes instead of 3000; bake it again"));
  fs::remove(kernel);
  CHECK(refusal(images.store, "micro") ==
        cat("base image 'micro' is unusable: ", kernel.native(), " is missing; bake it again"));
}

TEST_CASE("verify finds a flipped bit that the size does not show, and all else that is wrong") {
  const StoreFixture images;
  const ImageManifest manifest = images.publish("micro");
  CHECK(images.store.verify("micro").value().empty());
  const fs::path root = images.store.blob_path(*manifest.root);
  std::string bytes = PosixHost().read_file(root).value();
  bytes[200] = static_cast<char>(bytes[200] ^ 1);
  REQUIRE(PosixHost().replace_file(root, bytes, 0444));
  CHECK(images.store.resolve("micro"));
  const auto flipped = images.store.verify("micro").value();
  REQUIRE(flipped.size() == 1);
  CHECK(flipped[0].starts_with(cat(root.native(), " has other content: its sha256 is ")));
  const fs::path kernel = images.store.blob_path(*manifest.kernel);
  const fs::path modules = images.store.blob_path(*manifest.modules);
  fs::remove(kernel);
  fs::resize_file(modules, 1000);
  const auto all = images.store.verify("micro").value();
  REQUIRE(all.size() == 3);
  CHECK(all[0] == cat(kernel.native(), " is missing"));
  CHECK(all[1] == cat(modules.native(), " has 1000 bytes instead of 1024"));
  CHECK(all[2] == flipped[0]);
  CHECK(images.store.verify("other").error().code == ErrorCode::not_found);
}

TEST_CASE("of a foreign image verify reads the header") {
  const StoreFixture images;
  images.scratch.write("images/cuda.qcow2", qcow2_header(1 << 20));
  CHECK(images.store.verify("cuda").value().empty());
  images.scratch.write("images/cuda.qcow2", "not a disk");
  CHECK(images.store.verify("cuda").value().size() == 1);
}

TEST_CASE("an image for other machines or of an unknown way to start is refused") {
  const StoreFixture images;
  ImageManifest manifest = images.manifest("other");
  manifest.arch = "arm64";
  REQUIRE(images.store.publish(manifest));
  CHECK(refusal(images.store, "other") ==
        "base image 'other' is unusable: it is for arm64 machines, not amd64; bake it again");
  manifest.boot = "tape";
  REQUIRE(images.store.publish(manifest));
  CHECK(refusal(images.store, "other") ==
        "base image 'other' is unusable: it boots by \"tape\", "
        "which this program does not know; bake it again");
}

TEST_CASE("the list has every image by name, the broken ones with their problem") {
  const StoreFixture images;
  CHECK(ImageStore({.dir = images.scratch.path() / "nowhere"}).list().empty());
  images.publish("micro");
  const ImageManifest broken = images.publish("broken");
  fs::remove(images.store.blob_path(*broken.root));
  images.scratch.write("images/vendor/cuda.qcow2", qcow2_header(1 << 20));
  images.scratch.write("images/garbage.json", "{");
  images.scratch.write("images/.bake-1/x.json", "{}");
  const auto list = images.store.list();
  REQUIRE(list.size() == 4);
  CHECK(list[0].manifest.name == "broken");
  CHECK(list[0].problem.ends_with(" is missing"));
  CHECK(list[1].manifest.name == "garbage");
  CHECK(list[1].problem == "base image 'garbage': not an image manifest: invalid JSON");
  CHECK(list[2].manifest.name == "micro");
  CHECK(list[2].problem.empty());
  CHECK(list[2].size == 3000 + 1024 + 512);
  CHECK(list[3].manifest.name == "vendor/cuda");
  CHECK(list[3].foreign);
  CHECK(list[3].manifest.disk_bytes == 1 << 20);
}

TEST_CASE("a manifest is not published without its files or under an unfit name") {
  const StoreFixture images;
  ImageManifest manifest = images.manifest("micro");
  for (const char* name : {"", "a b", "../x", "/x", "a//b", ".hidden", "a/.b", "-x", "blobs/x"}) {
    manifest.name = name;
    CHECK(images.store.publish(manifest).error().code == ErrorCode::invalid_argument);
  }
  manifest.name = "micro";
  fs::remove(images.store.blob_path(*manifest.modules));
  CHECK_FALSE(images.store.publish(manifest));
  CHECK(images.store.list().empty());
}

TEST_CASE("collecting takes files that nothing needs, once they are an hour old") {
  const StoreFixture images;
  const ImageManifest kept = images.publish("kept");
  const BlobRef fresh = images.blob(100);
  const BlobRef old = images.blob(101);
  const BlobRef running = images.blob(102);
  for (const BlobRef& blob : {*kept.kernel, *kept.modules, *kept.root, old, running}) {
    make_old(images.store.blob_path(blob));
  }
  const auto looked =
      images.store.collect({fs::path("/elsewhere") / running.sha256}, Collecting::look_only);
  REQUIRE(looked);
  CHECK(looked->bytes() == 101);
  CHECK(fs::exists(images.store.blob_path(old)));
  // A VM may name the store by another path.
  const auto collected = images.store.collect({fs::path("/elsewhere") / running.sha256});
  REQUIRE(collected);
  REQUIRE(collected->files.size() == 1);
  CHECK(collected->files[0].path == images.store.blob_path(old));
  CHECK(collected->bytes() == 101);
  REQUIRE(collected->recent.size() == 1);
  CHECK(collected->recent[0].path == images.store.blob_path(fresh));
  CHECK(collected->recent[0].bytes == 100);
  CHECK_FALSE(fs::exists(images.store.blob_path(old)));
  CHECK(fs::exists(images.store.blob_path(fresh)));
  CHECK(fs::exists(images.store.blob_path(running)));
  CHECK(images.store.verify("kept").value().empty());
}

TEST_CASE("resolving an image keeps its files for another hour") {
  const StoreFixture images;
  const ImageManifest first = images.publish("micro");
  const auto image = images.store.resolve("micro");
  REQUIRE(image);
  make_old(image->kernel);
  make_old(image->initrd);
  REQUIRE(images.store.resolve("micro"));
  images.publish("micro");
  REQUIRE(images.store.collect({}));
  CHECK(fs::exists(image->kernel));
  CHECK(fs::exists(image->initrd));
  make_old(image->kernel);
  make_old(image->initrd);
  REQUIRE(images.store.collect({}));
  CHECK_FALSE(fs::exists(image->kernel));
  CHECK_FALSE(fs::exists(image->initrd));
}

TEST_CASE("while a manifest cannot be read no blob is collected") {
  const StoreFixture images;
  const BlobRef blob = images.blob(100);
  make_old(images.store.blob_path(blob));
  images.scratch.write("images/newer.json", "{\"schema\": 2}");
  CHECK(images.store.collect({}).value().unreadable == std::vector<std::string>{"newer"});
  CHECK(fs::exists(images.store.blob_path(blob)));
  fs::remove(images.store.dir() / "newer.json");
  REQUIRE(images.store.collect({}));
  CHECK_FALSE(fs::exists(images.store.blob_path(blob)));
}

TEST_CASE("the folder of a bake that was killed is collected, that of a living one is not") {
  const StoreFixture images;
  images.scratch.write("images/.bake-dead/root/etc/passwd", "x");
  images.scratch.write("images/.bake-dead/lock", "");
  images.scratch.write("images/.bake-alive/root/etc/passwd", "x");
  const auto lock = try_lock_file(images.store.dir() / ".bake-alive/lock");
  REQUIRE(lock);
  REQUIRE(lock->has_value());
  REQUIRE(images.store.collect({}));
  CHECK_FALSE(fs::exists(images.store.dir() / ".bake-dead"));
  CHECK(fs::exists(images.store.dir() / ".bake-alive/root/etc/passwd"));
}

TEST_CASE("a blob that comes again replaces a damaged one under whoever reads it") {
  const StoreFixture images;
  const std::string bytes = random_bytes(500);
  const BlobRef blob = *images.store.adopt_blob(images.scratch.write("images/.in", bytes));
  const fs::path path = images.store.blob_path(blob);
  REQUIRE(PosixHost().replace_file(path, std::string(500, 'x'), 0444));
  const Fd reader(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(images.store.adopt_blob(images.scratch.write("images/.in", bytes)).value() == blob);
  CHECK(PosixHost().read_file(path).value() == bytes);
  std::string seen(500, '\0');
  CHECK(::pread(reader.get(), seen.data(), seen.size(), 0) == 500);
  CHECK(seen == std::string(500, 'x'));
}

TEST_CASE("removing a tree does not follow its symlinks") {
  const ScratchDir scratch;
  const fs::path outside = scratch.write("outside/file", "precious");
  scratch.write("tree/a/b/file", "x");
  fs::create_directory_symlink(outside.parent_path(), scratch.path() / "tree/a/link");
  REQUIRE(remove_tree_of_one_file_system(scratch.path() / "tree"));
  CHECK_FALSE(fs::exists(scratch.path() / "tree"));
  CHECK(fs::exists(outside));
  CHECK(remove_tree_of_one_file_system(scratch.path() / "tree"));
}

}  // namespace
}  // namespace fuse
