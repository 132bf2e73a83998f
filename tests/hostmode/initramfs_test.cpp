#include "hostmode/initramfs.h"

#include <map>
#include <optional>
#include <thread>

#include "tests/hostmode/image_fixture.h"

namespace fuse {
namespace {

struct Entry {
  std::uint32_t mode = 0;
  std::uint32_t inode = 0;
  std::string bytes{};
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
};

// Reads an archive as the kernel does: entries at multiples of four, archives
// one after another with zeros between, the later entry of a name wins.
class KernelReader {
 public:
  explicit KernelReader(std::string_view bytes) : bytes_(bytes) {
    while (at_ < bytes_.size()) {
      if (bytes_[at_] == '\0') {
        ++at_;
        continue;
      }
      REQUIRE(at_ % 4 == 0);
      read_entry();
    }
  }

  std::map<std::string, Entry> entries{};
  std::vector<std::string> order{};
  int archives = 0;

 private:
  std::uint32_t field(int index) const {
    const std::string text(bytes_.substr(at_ + 6 + 8 * static_cast<std::size_t>(index), 8));
    return static_cast<std::uint32_t>(std::stoul(text, nullptr, 16));
  }

  void read_entry() {
    REQUIRE(bytes_.size() - at_ >= 110);
    REQUIRE(bytes_.substr(at_, 6) == "070701");
    Entry entry{.mode = field(1), .inode = field(0), .major = field(9), .minor = field(10)};
    const std::uint32_t size = field(6);
    const std::uint32_t name_size = field(11);
    const std::string name(bytes_.substr(at_ + 110, name_size - 1));
    REQUIRE(bytes_.at(at_ + 110 + name_size - 1) == '\0');
    at_ = padded(at_ + 110 + name_size);
    REQUIRE(bytes_.size() - at_ >= size);
    entry.bytes = bytes_.substr(at_, size);
    at_ = padded(at_ + size);
    if (name == "TRAILER!!!") {
      ++archives;
      return;
    }
    // Nothing is made below a folder that is not there yet.
    const std::string parent = fs::path(name).parent_path().native();
    if (!parent.empty()) REQUIRE(S_ISDIR(entries.at(parent).mode));
    order.push_back(name);
    entries[name] = entry;
  }

  static std::size_t padded(std::size_t at) { return (at + 3) / 4 * 4; }

  std::string_view bytes_;
  std::size_t at_ = 0;
};

TEST_CASE("an archive holds what was put in, with the folders above") {
  InitramfsArchive archive;
  const std::string program = random_bytes(4097);
  archive.add_file("usr/bin/program", program, 0755);
  archive.add_symlink("bin/sh", "/usr/bin/program");
  archive.add_dir("tmp", 01777);
  archive.add_char_device("dev/console", 0600, 5, 1);
  archive.add_file("empty", "");
  const std::string bytes = archive.finish();
  CHECK(bytes.size() % 512 == 0);

  const KernelReader read(bytes);
  CHECK(read.archives == 1);
  CHECK(read.order == std::vector<std::string>{"usr", "usr/bin", "usr/bin/program", "bin", "bin/sh",
                                               "tmp", "dev", "dev/console", "empty"});
  CHECK(read.entries.at("usr/bin").mode == (S_IFDIR | 0755));
  CHECK(read.entries.at("usr/bin/program").mode == (S_IFREG | 0755));
  CHECK(read.entries.at("usr/bin/program").bytes == program);
  CHECK(read.entries.at("bin/sh").mode == (S_IFLNK | 0777));
  CHECK(read.entries.at("bin/sh").bytes == "/usr/bin/program");
  CHECK(read.entries.at("tmp").mode == (S_IFDIR | 01777));
  CHECK(read.entries.at("dev/console").mode == (S_IFCHR | 0600));
  CHECK(read.entries.at("dev/console").major == 5);
  CHECK(read.entries.at("dev/console").minor == 1);
  CHECK(read.entries.at("empty").bytes.empty());
}

TEST_CASE("equal entries make equal archives, and no two entries share an inode") {
  const auto make = [] {
    InitramfsArchive archive;
    archive.add_file("a/b", "one");
    archive.add_file("a/c", "two");
    return archive.finish();
  };
  const std::string bytes = make();
  CHECK(bytes == make());
  std::set<std::uint32_t> inodes;
  const KernelReader read(bytes);
  for (const auto& [name, entry] : read.entries) inodes.insert(entry.inode);
  CHECK(inodes.size() == 3);
}

TEST_CASE("a composed initramfs has the archives' files and our agent as its init") {
  const ScratchDir scratch;
  InitramfsArchive modules;
  modules.add_file("lib/modules/fuse.order", "/lib/modules/a.ko\n");
  InitramfsArchive root;
  root.add_file("init", "somebody else's", 0644);
  root.add_file("bin/busybox", "busybox", 0755);
  const std::vector<fs::path> archives{scratch.write("modules", modules.finish()),
                                       scratch.write("root", root.finish())};
  // Every way to be padded.
  for (std::size_t size = 5000; size < 5004; ++size) {
    const std::string agent = random_bytes(size);
    const fs::path into = scratch.path() / "initrd.cpio";
    REQUIRE(compose_initramfs(into, archives, scratch.write("agent", agent)));
    const KernelReader read(PosixHost().read_file(into).value());
    CHECK(read.archives == 3);
    CHECK(read.entries.at("init").bytes == agent);
    CHECK(read.entries.at("init").mode == (S_IFREG | 0755));
    CHECK(read.entries.at("dev/console").mode == (S_IFCHR | 0600));
    CHECK(read.entries.at("bin/busybox").bytes == "busybox");
    CHECK(read.entries.at("lib/modules/fuse.order").bytes == "/lib/modules/a.ko\n");
  }
}

TEST_CASE("an initramfs that cannot be composed leaves no file") {
  const ScratchDir scratch;
  const fs::path agent = scratch.write("agent", "agent");
  const auto files = [&] { return PosixHost().list_dir(scratch.path()).value(); };
  const std::vector<std::string> before = files();
  const std::vector<fs::path> missing{scratch.path() / "missing"};
  CHECK(compose_initramfs(scratch.path() / "out", missing, agent).error().code ==
        ErrorCode::not_found);
  CHECK(files() == before);
  const std::vector<fs::path> unpadded{agent};
  CHECK(compose_initramfs(scratch.path() / "out", unpadded, agent).error().code ==
        ErrorCode::internal);
  CHECK(files() == before);
}

}  // namespace
}  // namespace fuse
