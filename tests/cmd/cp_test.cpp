#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cmd/guest_files.h"
#include "cmd/tar.h"
#include "cmd/tree_unpack.h"
#include "tests/cmd/local_guest.h"
#include "tests/cmd/world.h"

namespace fuse::cmd {

namespace {

// The guest's files are those of the folder `guest`; its commands run here.
struct CopyWorld : World {
  fs::path guest = folder.path() / "guest";
  std::vector<AttachRequest> asked{};

  CopyWorld() {
    fs::create_directories(guest);
    environments.attach_with =
        [this](const AttachRequest& request) -> Result<std::unique_ptr<AttachSession>> {
      asked.push_back(request);
      CHECK_FALSE(request.tty);
      return std::unique_ptr<AttachSession>(std::make_unique<LocalSession>(request.cmd));
    };
    environments.exec_with = [](const ExecRequest& request) { return run_here(request); };
  }
  [[nodiscard]] std::string far(const std::string& name) const {
    return cat("fuse-a:", (guest / name).native());
  }
  int cp(const std::string& from, const std::string& to) { return fuse({"cp", from, to}); }
  [[nodiscard]] std::string bytes_of(const std::string& name) {
    const auto read = host.read_file(folder.path() / name);
    return read ? *read : cat("error: ", read.error().message);
  }
  [[nodiscard]] int mode_of(const std::string& name) const {
    struct stat found {};
    return ::stat((folder.path() / name).c_str(), &found) == 0
               ? static_cast<int>(found.st_mode & 07777U)
               : -1;
  }
  // Names of what a failed copy would leave beside its place.
  [[nodiscard]] bool is_tidy() const {
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
      if (entry.path().filename().native().starts_with(".fuse-cp-")) return false;
    }
    return true;
  }
};

const std::string binary = std::string("\0\xff\r\n", 4) + std::string(300'000, '\x80') + "end";

}  // namespace

TEST_CASE("cp brings a file from an environment, byte for byte and with its mode") {
  CopyWorld world;
  world.folder.write("guest/out.bin", binary);
  fs::permissions(world.guest / "out.bin", fs::perms(0751));
  CHECK(world.cp(world.far("out.bin"), ".") == success);
  CHECK(world.bytes_of("out.bin") == binary);
  CHECK(world.mode_of("out.bin") == 0751);
  CHECK(world.cp(world.far("out.bin"), "other") == success);
  CHECK(world.bytes_of("other") == binary);
  // One that is there is replaced, and a link to one is kept.
  world.folder.write("real", "old");
  fs::create_symlink("real", world.folder.path() / "link");
  CHECK(world.cp(world.far("out.bin"), "link") == success);
  CHECK(world.bytes_of("real") == binary);
  CHECK(fs::is_symlink(world.folder.path() / "link"));
  CHECK(world.out.str().empty());
  CHECK(world.is_tidy());
}

TEST_CASE("cp takes a file to an environment, byte for byte and with its mode") {
  CopyWorld world;
  world.folder.write("in.bin", binary);
  fs::permissions(world.folder.path() / "in.bin", fs::perms(0700));
  CHECK(world.cp("in.bin", world.far("")) == success);
  CHECK(world.bytes_of("guest/in.bin") == binary);
  CHECK(world.mode_of("guest/in.bin") == 0700);
  CHECK(world.cp("in.bin", world.far("renamed")) == success);
  CHECK(world.bytes_of("guest/renamed") == binary);
  CHECK(world.is_tidy());
}

TEST_CASE("cp carries folders both ways: names with newlines, links, modes, empty ones") {
  CopyWorld world;
  const std::string odd = "line\nfeed \xff 'quoted' -x";
  world.folder.write(fs::path("tree/sub") / odd, binary);
  world.folder.write("tree/" + std::string(180, 'n'), "long");
  fs::create_directories(world.folder.path() / "tree/empty");
  fs::create_symlink("../elsewhere", world.folder.path() / "tree/link");
  world.folder.write("tree/script", "#!/bin/sh\n");
  fs::permissions(world.folder.path() / "tree/script", fs::perms(0755));
  fs::permissions(world.folder.path() / "tree/sub", fs::perms(0711));
  fs::permissions(world.folder.path() / "tree", fs::perms(0750));

  CHECK(world.cp("tree", world.far("")) == success);
  CHECK(world.cp(world.far("tree"), "back") == success);
  for (const std::string copy : {"guest/tree/", "back/"}) {
    CHECK(world.bytes_of((fs::path(copy) / "sub" / odd).native()) == binary);
    CHECK(world.bytes_of(copy + std::string(180, 'n')) == "long");
    CHECK(fs::is_directory(world.folder.path() / copy / "empty"));
    CHECK(fs::read_symlink(world.folder.path() / copy / "link") == "../elsewhere");
    CHECK(world.mode_of(copy + "script") == 0755);
    CHECK(world.mode_of(copy + "sub") == 0711);
    CHECK(world.mode_of(copy + ".") == 0750);
  }
  CHECK(world.err.str().find("3 files, ") != std::string::npos);
}

TEST_CASE("cp into a folder that is there adds to it, and leaves its own mode") {
  CopyWorld world;
  world.folder.write("tree/new", "n");
  world.folder.write("guest/there/old", "o");
  fs::permissions(world.guest / "there", fs::perms(0701));
  CHECK(world.cp("tree/.", world.far("there")) == success);
  CHECK(world.bytes_of("guest/there/new") == "n");
  CHECK(world.bytes_of("guest/there/old") == "o");
  CHECK(world.mode_of("guest/there") == 0701);
  world.folder.write("mine/own", "m");
  fs::permissions(world.folder.path() / "mine", fs::perms(0710));
  CHECK(world.cp(world.far("there/."), "mine") == success);
  CHECK(world.bytes_of("mine/new") == "n");
  CHECK(world.bytes_of("mine/own") == "m");
  CHECK(world.mode_of("mine") == 0710);
  CHECK(world.cp(world.far("there"), "mine") == success);
  CHECK(world.bytes_of("mine/there/old") == "o");
}

TEST_CASE("cp streams one file to stdout and from stdin") {
  CopyWorld world;
  world.folder.write("guest/out.bin", binary);
  CHECK(world.cp(world.far("out.bin"), "-") == success);
  CHECK(world.out.str() == binary);
  CHECK(world.err.str().empty());

  world.folder.write("input", binary);
  const Fd input(::open((world.folder.path() / "input").c_str(), O_RDONLY | O_CLOEXEC));
  world.terminal.input = input.get();
  CHECK(world.cp("-", world.far("in.bin")) == success);
  CHECK(world.bytes_of("guest/in.bin") == binary);
  CHECK(world.mode_of("guest/in.bin") == 0644);

  CHECK(world.cp("-", world.far("")) == failed);
  CHECK(world.cp(world.far(""), "-") == failed);
  CHECK(world.err.str().find("is a folder, of which there is no stream") != std::string::npos);
}

TEST_CASE("cp says what is not there, on either side") {
  CopyWorld world;
  CHECK(world.cp(world.far("missing"), ".") == failed);
  CHECK(world.err.str() == cat("error: there is no file or folder ", world.far("missing"), "\n"));
  world.err.str("");
  CHECK(world.cp("missing", world.far("x")) == failed);
  CHECK(world.err.str() == "error: there is no file or folder missing\n");
  world.err.str("");
  world.folder.write("file", "x");
  CHECK(world.cp("file", world.far("no/such/place")) == failed);
  CHECK(world.err.str().starts_with(cat("error: there is no folder ", world.far("no/such"),
                                        "\n  make it: fuse exec fuse-a -- "
                                        "mkdir -p '")));
  world.err.str("");
  CHECK(world.cp(world.far(""), "file") == failed);
  CHECK(world.err.str() == "error: file is not a folder\n");
  CHECK(world.is_tidy());
}

TEST_CASE("cp says what a guest's disk or a folder of ours refuses") {
  CopyWorld world;
  world.folder.write("file", "some bytes");
  // Nothing can be made in /proc, whoever asks; /dev/full takes nothing.
  CHECK(world.cp("file", "fuse-a:/proc/new") == failed);
  CHECK(world.err.str().starts_with("error: cannot write fuse-a:/proc/new: "));
  world.err.str("");
  world.folder.write("guest/out", "x");
  CHECK(world.cp(world.far("out"), "/dev/full") == failed);
  CHECK(world.err.str() == "error: write /dev/full: No space left on device\n");
  CHECK(world.is_tidy());
}

TEST_CASE("a full disk of a guest is called that, and what was begun there is removed") {
  CopyWorld world;
  world.folder.write("file", "some bytes");
  world.environments.attach_with =
      [](const AttachRequest& request) -> Result<std::unique_ptr<AttachSession>> {
    std::vector<std::string> argv = request.cmd;
    if (argv.size() == 7) {
      argv = {"sh", "-c",
              "echo part >\"$1\"; cat >/dev/null; echo 'cat: write error: No space "
              "left on device' >&2; exit 1",
              "sh", argv[4]};
    }
    return std::unique_ptr<AttachSession>(std::make_unique<LocalSession>(argv));
  };
  CHECK(world.cp("file", world.far("x")) == failed);
  CHECK(world.err.str().starts_with(
      cat("error: cannot write ", world.far("x"), ": the disk of fuse-a is full\n")));
  CHECK(world.is_tidy());
}

TEST_CASE("cp refuses what is no copy between here and an environment") {
  CopyWorld world;
  CHECK(world.cp("a", "b") == wrong_usage);
  CHECK(world.err.str().starts_with("error: neither side is in an environment\n"));
  world.err.str("");
  CHECK(world.cp("x:/a", "y:/b") == wrong_usage);
  CHECK(world.err.str() ==
        "error: both sides are in environments\n"
        "  by way of this machine: fuse cp x:/a - | fuse cp - y:/b\n");
  CHECK(world.cp("x:a", "b") == wrong_usage);
  CHECK(world.fuse({"cp", "x:/a"}) == wrong_usage);
  CHECK(world.asked.empty());
}

TEST_CASE("cp that breaks off leaves what was there") {
  CopyWorld world;
  world.folder.write("target", "old");
  world.folder.write("guest/out", binary);
  // The command dies in the middle, as when the connection does.
  world.environments.attach_with =
      [](const AttachRequest& request) -> Result<std::unique_ptr<AttachSession>> {
    std::vector<std::string> argv = request.cmd;
    if (argv.front() == "cat")
      argv = {"sh", "-c", "head -c 1000 \"$1\"; kill -9 $$", "sh", argv[1]};
    return std::unique_ptr<AttachSession>(std::make_unique<LocalSession>(argv));
  };
  CHECK(world.cp(world.far("out"), "target") == failed);
  CHECK(world.bytes_of("target") == "old");
  CHECK(world.is_tidy());
}

TEST_CASE("cp that is interrupted says so and leaves nothing half done") {
  CopyWorld world;
  world.folder.write("guest/out", binary);
  world.environments.attach_with =
      [&world](const AttachRequest& request) -> Result<std::unique_ptr<AttachSession>> {
    std::vector<std::string> argv = request.cmd;
    if (argv.front() == "cat") {
      argv = {"sh", "-c", "sleep 1000"};
      world.signals.raise(SIGINT);
    }
    return std::unique_ptr<AttachSession>(std::make_unique<LocalSession>(argv));
  };
  CHECK(world.cp(world.far("out"), "target") == interrupted);
  CHECK_FALSE(fs::exists(world.folder.path() / "target"));
  CHECK(world.is_tidy());
}

TEST_CASE("an orchestrator that only carries terminals is said to") {
  CopyWorld world;
  world.environments.attach_with = [](const AttachRequest&) {
    return Result<std::unique_ptr<AttachSession>>(
        Error{ErrorCode::invalid_argument, "attach requires tty=1; use ?action=exec"});
  };
  CHECK(world.cp(world.far("out"), ".") == failed);
  CHECK(world.err.str() ==
        "error: the orchestrator of fuse-a only carries terminals, which bytes do not survive\n");
}

TEST_CASE("what a guest packs cannot leave the folder it is unpacked into") {
  const TestFolder folder;
  fs::create_directories(folder.path() / "in");
  folder.write("outside/file", "ours");
  const auto unpack = [&folder](const std::string& archive) -> std::string {
    Fd in(::open((folder.path() / "in").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    TreeUnpacker unpacker(std::move(in), false);
    TarReader reader(unpacker);
    const auto fed = reader.feed(archive);
    return fed ? "" : fed.error().message;
  };
  const auto file = [](const std::string& path) {
    return cat(tar_header({.path = path, .mode = 04777, .size = 4}), "evil", tar_padding(4));
  };
  const auto link = [](TarEntry::Type type, const std::string& path, const std::string& target) {
    return tar_header({.type = type, .path = path, .target = target});
  };
  using Type = TarEntry::Type;
  CHECK(unpack(file("../outside/file")).find("outside of it") != std::string::npos);
  CHECK(unpack(file("a/../../outside/file")).find("outside of it") != std::string::npos);
  CHECK_FALSE(unpack(cat(link(Type::symlink, "l", "../outside"), file("l/file"))).empty());
  CHECK_FALSE(unpack(cat(link(Type::symlink, "d", "../outside"),
                         tar_header({.type = Type::folder, .path = "d", .mode = 0777})))
                  .empty());
  CHECK(unpack(link(Type::hardlink, "h", "../outside/file")).find("outside of it") !=
        std::string::npos);
  // A link is replaced, not followed; an absolute path is one below the folder.
  CHECK(unpack(cat(link(Type::symlink, "f", "../outside/file"), file("f"))).empty());
  CHECK(unpack(file("/outside/file")).empty());
  PosixHost host;
  CHECK(host.read_file(folder.path() / "outside/file").value() == "ours");
  CHECK(host.read_file(folder.path() / "in/outside/file").value() == "evil");
  CHECK(host.read_file(folder.path() / "in/f").value() == "evil");
  struct stat found {};
  REQUIRE(::stat((folder.path() / "in/f").c_str(), &found) == 0);
  CHECK((found.st_mode & 07777U) == 0777);
}

TEST_CASE("hard links and folders that may not be written to are unpacked") {
  const TestFolder folder;
  fs::create_directories(folder.path() / "in");
  TreeUnpacker unpacker(
      Fd(::open((folder.path() / "in").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), true);
  TarReader reader(unpacker);
  using Type = TarEntry::Type;
  REQUIRE(
      reader.feed(cat(tar_header({.type = Type::folder, .path = "./", .mode = 0555}),
                      tar_header({.type = Type::folder, .path = "./ro/", .mode = 0500}),
                      tar_header({.path = "./ro/f", .mode = 0400, .size = 1}), "x", tar_padding(1),
                      tar_header({.type = Type::hardlink, .path = "./h", .target = "./ro/f"}),
                      tar_header({.type = Type::other, .path = "./dev"}), tar_end())));
  REQUIRE(unpacker.finish());
  CHECK(fs::hard_link_count(folder.path() / "in/h") == 2);
  CHECK(fs::status(folder.path() / "in/ro").permissions() == fs::perms(0500));
  CHECK(fs::status(folder.path() / "in").permissions() == fs::perms(0555));
  fs::permissions(folder.path() / "in", fs::perms(0755));
  fs::permissions(folder.path() / "in/ro", fs::perms(0755));
}

TEST_CASE("of tar's complaints those about files that live are no failure") {
  CHECK(is_only_news("tar: ./log: file changed as we read it\n"));
  CHECK(is_only_news("tar: ./a: File removed before we read it\ntar: ./s: socket ignored\n"));
  CHECK_FALSE(is_only_news("tar: ./a: Cannot open: Permission denied\n"));
  CHECK_FALSE(is_only_news(""));
}

}  // namespace fuse::cmd
