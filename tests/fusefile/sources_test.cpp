#include "fusefile/sources.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/fusefile/compiling.h"
#include "tests/fusefile/fake_source_tree.h"

namespace fuse {
namespace {

const fs::path fusefile = "/home/me/job/Fusefile";

// What loading came to: the problems as text, and the guest paths.
struct Loaded {
  LoadedSources sources{};
  std::string problems{};
  std::string paths{};
};

Loaded load(SourceTree& tree, std::string_view text, SourceOptions options = {}) {
  Loaded loaded;
  Diagnostics diagnostics;
  loaded.sources = load_sources(parsed(text), fusefile, tree, options, diagnostics);
  for (const Diagnostic& d : diagnostics.all()) loaded.problems += cat(d.text(), "\n");
  for (const auto& [path, file] : loaded.sources.copied) {
    loaded.paths += cat(path, file.executable ? " x\n" : "\n");
  }
  return loaded;
}

FakeSourceTree small_tree() {
  FakeSourceTree tree;
  tree.file("/home/me/job/Fusefile");
  tree.file("/home/me/job/src/main.py", "print()");
  tree.file("/home/me/job/src/lib/a.py", "a");
  tree.file("/home/me/job/src/run.sh", "#!/bin/sh", true);
  return tree;
}

TEST_CASE("a folder is copied file by file, with what is executable") {
  FakeSourceTree tree = small_tree();
  const Loaded loaded = load(tree, "version: 1\ncopy: [{from: src, to: app}]\n");
  CHECK(loaded.problems.empty());
  CHECK(loaded.paths ==
        "/workspace/app/lib/a.py\n/workspace/app/main.py\n/workspace/app/run.sh x\n");
  CHECK(loaded.sources.copied.at("/workspace/app/main.py").bytes == "print()");
  CHECK(loaded.sources.copied.at("/workspace/app/lib/a.py").source == "src/lib/a.py");
}

TEST_CASE("a single file goes where it is sent, or into the folder that is named") {
  FakeSourceTree tree = small_tree();
  const Loaded loaded = load(tree,
                             "version: 1\nworkspace: /w\ncopy:\n"
                             "  - {from: src/main.py, to: job.py}\n"
                             "  - {from: ./src/../src/run.sh, to: bin/}\n"
                             "  - {from: src/lib/a.py, to: .}\n");
  CHECK(loaded.problems.empty());
  CHECK(loaded.paths == "/w/a.py\n/w/bin/run.sh x\n/w/job.py\n");
  CHECK(loaded.sources.copied.at("/w/a.py").source == "src/lib/a.py");
}

TEST_CASE("what is ignored by default does not travel and is not walked") {
  FakeSourceTree tree = small_tree();
  for (const char* path : {".git/HEAD", "src/node_modules/x/y.js", "src/__pycache__/a.pyc", "b.pyc",
                           ".env", ".env.local", "id.pem", "id.key", "venv/bin/python",
                           "sub/target/x", "dist/a", "build/b", ".DS_Store", ".venv/a"}) {
    tree.file(cat("/home/me/job/", path));
  }
  tree.link("/home/me/job/secret.key", "/etc/shadow");
  const Loaded loaded = load(tree, "version: 1\ncopy: [{from: ., to: .}]\n");
  CHECK(loaded.problems.empty());
  CHECK(loaded.paths ==
        "/workspace/Fusefile\n/workspace/src/lib/a.py\n/workspace/src/main.py\n"
        "/workspace/src/run.sh x\n");
  CHECK(tree.listed == std::vector<std::string>{"/home/me/job", "/home/me/job/src",
                                                "/home/me/job/src/lib", "/home/me/job/sub"});
}

TEST_CASE(".fuseignore adds to the defaults and may take them back") {
  FakeSourceTree tree = small_tree();
  tree.file("/home/me/job/src/.env", "x");
  tree.file("/home/me/job/src/lib/deep/b.txt");
  tree.file("/home/me/job/.fuseignore", "# ours\n!.env\nlib/*.py\n/run.sh\n");
  const Loaded loaded = load(tree, "version: 1\ncopy: [{from: src, to: s}]\n");
  CHECK(loaded.problems.empty());
  CHECK(loaded.paths == "/workspace/s/.env\n/workspace/s/lib/deep/b.txt\n/workspace/s/main.py\n");
}

TEST_CASE("a pattern applies to folders, not to a file that is named") {
  FakeSourceTree tree = small_tree();
  tree.file("/home/me/job/.env", "A=1");
  const Loaded loaded = load(tree, "version: 1\ncopy: [{from: .env, to: env}]\n");
  CHECK(loaded.problems.empty());
  CHECK(loaded.paths == "/workspace/env\n");
}

TEST_CASE("a malformed pattern is an error, since it would not keep a file back") {
  FakeSourceTree tree = small_tree();
  tree.file("/home/me/job/.fuseignore", "*.log\n[a-\n");
  const Loaded loaded = load(tree, "version: 1\ncopy: [{from: src, to: s}]\n");
  CHECK(loaded.problems == ".fuseignore: line 2: malformed pattern \"[a-\"\n");
}

TEST_CASE("symlinks and special files are errors, each of them") {
  FakeSourceTree tree = small_tree();
  tree.link("/home/me/job/src/link", "/home/me/job/src/main.py");
  tree.link("/home/me/job/top", "/home/me/job/src");
  tree.entries["/home/me/job/src/pipe"].special = true;
  const Loaded loaded = load(tree, "version: 1\ncopy: [{from: src, to: s}, {from: top/, to: t}]\n");
  CHECK(loaded.problems ==
        "copy[0].from: \"link\" is a symlink; only files and folders are copied\n"
        "copy[0].from: \"pipe\" is neither a file nor a folder\n"
        "copy[1].from: \"top/\" is a symlink; only files and folders are copied\n");
}

TEST_CASE("sources stay in the repository unless more is allowed") {
  FakeSourceTree tree = small_tree();
  tree.file("/home/me/.git/HEAD");
  tree.file("/home/me/shared/data.txt", "d");
  tree.file("/home/you/diary.txt", "s");
  tree.file("/etc/hostname", "h");
  tree.link("/home/me/job/out", "/home/you");
  const std::string text =
      "version: 1\ncopy:\n"
      "  - {from: ../shared/data.txt, to: a}\n"
      "  - {from: ../../you/diary.txt, to: b}\n"
      "  - {from: /etc/hostname, to: c}\n"
      "  - {from: out/diary.txt, to: d}\n"
      "files: [{path: e, source: out/diary.txt}, {path: f, source: ../../you/diary.txt}]\n";
  const Loaded kept = load(tree, text);
  CHECK(kept.paths == "/workspace/a\n");
  const std::string outside =
      "is outside the repository \"/home/me\", which needs --allow-outside\n";
  CHECK(kept.problems ==
        cat("copy[1].from: \"../../you/diary.txt\" ", outside,
            "copy[2].from: \"/etc/hostname\" is an absolute path, which needs --allow-outside\n",
            "copy[3].from: \"out/diary.txt\" ", outside,  //
            "files[0].source: \"out/diary.txt\" ", outside,
            "files[1].source: \"../../you/diary.txt\" ", outside));

  const Loaded all = load(tree, text, {.allow_outside = true});
  CHECK(all.problems.empty());
  CHECK(all.paths == "/workspace/a\n/workspace/b\n/workspace/c\n/workspace/d\n");
  CHECK(all.sources.file_bodies == std::map<std::size_t, std::string>{{0, "s"}, {1, "s"}});
}

TEST_CASE("without a repository the Fusefile's own folder is the bound") {
  FakeSourceTree tree = small_tree();
  tree.file("/home/me/data.txt");
  const Loaded loaded = load(tree, "version: 1\ncopy: [{from: ../data.txt, to: a}]\n");
  CHECK(loaded.problems ==
        "copy[0].from: \"../data.txt\" is outside the repository \"/home/me/job\", which needs "
        "--allow-outside\n");
}

TEST_CASE("missing sources are all named") {
  FakeSourceTree tree = small_tree();
  const Loaded loaded =
      load(tree,
           "version: 1\nfiles: [{path: a, source: no.txt}, {path: b, source: src}]\n"
           "copy: [{from: nothing, to: x}, {from: no/where, to: y}]\n");
  CHECK(loaded.problems ==
        "files[0].source: \"no.txt\" does not exist\n"
        "files[1].source: \"src\" is not a regular file\n"
        "copy[0].from: \"nothing\" does not exist\n"
        "copy[1].from: \"no/where\" does not exist\n");
}

// The problems of a text and of what it names, as a command shows them.
std::string all_problems(SourceTree& tree, std::string_view text) {
  ParsedFusefile parsed = parse_fusefile(text);
  REQUIRE(parsed.draft);
  const auto sources = load_sources(*parsed.draft, fusefile, tree, {}, parsed.diagnostics);
  std::string out;
  for (const Diagnostic& d : parsed.diagnostics.all()) out += cat(d.text(), "\n");
  return out;
}

TEST_CASE("a file with other problems is told of its sources too, in the file's order") {
  FakeSourceTree tree = small_tree();
  CHECK(all_problems(tree,
                     "version: 2\n"
                     "copy: [{from: nothing, to: x}, {from: src/main.py, to: y}]\n"
                     "unheard_of: 1\n"
                     "files: [{path: a, source: no.txt}]\n") ==
        "version: must be 1\n"
        "copy[0].from: \"nothing\" does not exist\n"
        "unheard_of: field unheard_of not found\n"
        "files[0].source: \"no.txt\" does not exist\n");
}

TEST_CASE("what the file itself has wrong about its sources is told once") {
  FakeSourceTree tree = small_tree();
  tree.link("/home/me/job/src/link", "/home/me/job/src/main.py");
  CHECK(all_problems(tree,
                     "version: 1\n"
                     "copy:\n"
                     "  - {from: src, to: ../x}\n"
                     "  - {to: y}\n"
                     "  - {from: src/main.py, to: /fuse/x}\n"
                     "  - {from: src/main.py}\n"
                     "  - no entry\n"
                     "  - {from: [src], to: z}\n"
                     "files:\n"
                     "  - {path: a, source: no.txt, content: x}\n"
                     "  - {path: b}\n"
                     "  - {path: b, source: {a: b}}\n") ==
        "copy[0].from: \"link\" is a symlink; only files and folders are copied\n"
        "copy[0].to: must not contain \"..\" segments\n"
        "copy[1].from: is required\n"
        "copy[2].to: \"/fuse/x\" resolves to /fuse/x, which is reserved for the guest agent's "
        "manifest, secrets and credentials\n"
        "copy[3].to: is required\n"
        "copy[4]: line 7: cannot unmarshal !!str `no entry` into map\n"
        "copy[5].from: line 8: cannot unmarshal !!seq into string\n"
        "files[0]: source and content are mutually exclusive\n"
        "files[0].source: \"no.txt\" does not exist\n"
        "files[1]: source or content is required\n"
        "files[2].path: \"b\" is already written by files[1]\n"
        "files[2].source: line 12: cannot unmarshal !!map into string\n");
  CHECK(
      all_problems(tree, cat("version: 1\nfiles: [{path: a, content: '", std::string(70000, 'x'),
                             "'}, {path: b, source: src/main.py}]\n")) ==
      "files: total content is 70000 bytes, over the 65536 byte limit; fetch large artifacts from "
      "`setup` instead\n");
}

TEST_CASE("bodies of files are bounded, contents and sources together") {
  FakeSourceTree tree = small_tree();
  tree.file("/home/me/job/big", std::string(65530, 'x'));
  const Loaded fits =
      load(tree, "version: 1\nfiles: [{path: a, source: big}, {path: b, content: 123456}]\n");
  CHECK(fits.problems.empty());
  CHECK(fits.sources.file_bodies.at(0).size() == 65530);
  const Loaded over =
      load(tree, "version: 1\nfiles: [{path: a, source: big}, {path: b, content: 1234567}]\n");
  CHECK(over.problems ==
        "files: total content is 65537 bytes, over the 65536 byte limit; fetch large artifacts "
        "from `setup` instead\n");
  CHECK(over.sources.file_bodies.empty());
}

TEST_CASE("copied bytes are bounded over all entries") {
  FakeSourceTree tree = small_tree();
  tree.file("/home/me/job/a/1", std::string(300000, 'x'));
  tree.file("/home/me/job/b/2", std::string(224288, 'x'));
  const std::string text = "version: 1\ncopy: [{from: a, to: a}, {from: b, to: b}]\n";
  CHECK(load(tree, text).problems.empty());
  tree.file("/home/me/job/b/3", "x");
  CHECK(load(tree, text).problems ==
        "copy: total content is over the 524288 byte limit at \"3\"\n");
}

TEST_CASE("nothing is written where the agent keeps its own, nor twice to one place") {
  FakeSourceTree tree = small_tree();
  tree.file("/home/me/job/root/fuse/env");
  tree.file("/home/me/job/root/etc/x");
  tree.file("/home/me/job/etc/x");
  const Loaded loaded =
      load(tree, "version: 1\ncopy: [{from: root, to: /}, {from: etc, to: /etc}]\n");
  CHECK(loaded.problems ==
        "copy[0].to: \"fuse/env\" resolves to /fuse/env, which is reserved for the guest agent's "
        "manifest, secrets and credentials\n"
        "copy[1].to: \"x\" resolves to /etc/x, which copy[0] already writes\n");
}

TEST_CASE("what cannot be read is named, and the rest is looked at all the same") {
  FakeSourceTree tree = small_tree();
  tree.file("/home/me/job/src/own/key.txt", "k");
  tree.file("/home/me/job/conf", "c");
  tree.closed = {"/home/me/job/src/main.py", "/home/me/job/src/own", "/home/me/job/conf"};
  const Loaded loaded = load(tree,
                             "version: 1\ncopy: [{from: src, to: s}, {from: conf, to: c}]\n"
                             "files: [{path: f, source: conf}]\n");
  CHECK(loaded.problems ==
        "copy[0].from: cannot read \"main.py\": /home/me/job/src/main.py: Permission denied\n"
        "copy[0].from: cannot read \"own\": /home/me/job/src/own: Permission denied\n"
        "copy[1].from: cannot read \"conf\": /home/me/job/conf: Permission denied\n"
        "files[0].source: cannot read \"conf\": /home/me/job/conf: Permission denied\n");
  CHECK(loaded.paths == "/workspace/s/lib/a.py\n/workspace/s/run.sh x\n");
}

TEST_CASE("a .fuseignore that cannot be read is an error: it might keep something back") {
  FakeSourceTree tree = small_tree();
  tree.file("/home/me/job/.fuseignore", "*.py\n");
  tree.closed = {"/home/me/job/.fuseignore"};
  CHECK(load(tree, "version: 1\ncopy: [{from: src, to: s}]\n").problems ==
        "cannot read \".fuseignore\": /home/me/job/.fuseignore: Permission denied\n");
}

TEST_CASE("a folder with too many names is given up, whatever is left out of it") {
  FakeSourceTree tree = small_tree();
  for (int i = 0; i < 20'001; ++i) tree.file(cat("/home/me/job/many/", i, ".pyc"));
  CHECK(load(tree, "version: 1\ncopy: [{from: many, to: m}]\n").problems ==
        "copy: more than 20000 files and folders\n");
  // A folder that is left out is not looked into.
  tree.file("/home/me/job/.fuseignore", "/many/\n");
  CHECK(load(tree, "version: 1\ncopy: [{from: ., to: m}]\n").problems.empty());
}

TEST_CASE("names that a request cannot carry are errors") {
  FakeSourceTree tree = small_tree();
  tree.file("/home/me/job/odd/a\nb");
  tree.file("/home/me/job/odd/\xFF");
  const Loaded loaded = load(tree, "version: 1\ncopy: [{from: odd, to: x}]\n");
  CHECK(loaded.problems ==
        "copy[0].from: the name \"a\\nb\" cannot be sent: it is not one line of UTF-8\n"
        "copy[0].from: the name \"\\xff\" cannot be sent: it is not one line of UTF-8\n");
}

// A folder in /tmp that goes away with it.
struct TemporaryFolder {
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "fuse-sources-XXXXXX").native();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = fs::canonical(pattern);
  }
  ~TemporaryFolder() { fs::remove_all(path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  fs::path path{};
};

TEST_CASE("the real tree reads files, kinds and the executable bit") {
  const TemporaryFolder folder;
  std::ofstream(folder.path / "plain") << "hello";
  std::ofstream(folder.path / "tool") << "x";
  REQUIRE(::chmod((folder.path / "tool").c_str(), 0755) == 0);
  fs::create_directory(folder.path / "sub");
  fs::create_symlink("plain", folder.path / "link");
  REQUIRE(::mkfifo((folder.path / "pipe").c_str(), 0600) == 0);

  PosixSourceTree tree;
  CHECK(tree.list(folder.path).value() ==
        std::vector<std::string>{"link", "pipe", "plain", "sub", "tool"});
  CHECK(tree.inspect(folder.path / "plain")->size == 5);
  CHECK_FALSE(tree.inspect(folder.path / "plain")->executable);
  CHECK(tree.inspect(folder.path / "tool")->executable);
  CHECK(tree.inspect(folder.path / "link")->kind == SourceKind::symlink);
  CHECK(tree.inspect(folder.path / "sub")->kind == SourceKind::directory);
  CHECK(tree.inspect(folder.path / "pipe")->kind == SourceKind::other);
  CHECK(tree.inspect(folder.path / "none").error().code == ErrorCode::not_found);
  CHECK(tree.canonical(folder.path / "sub/../link").value() == folder.path / "plain");
  CHECK(tree.canonical(folder.path / "none").error().code == ErrorCode::not_found);
  fs::create_symlink("loop", folder.path / "loop");
  CHECK_FALSE(tree.canonical(folder.path / "loop"));

  CHECK(tree.read(folder.path / "plain", 5).value() == "hello");
  CHECK(tree.read(folder.path / "plain", 4).error().code == ErrorCode::payload_too_large);
  // Neither waits for a writer nor follows.
  CHECK_FALSE(tree.read(folder.path / "pipe", 10));
  CHECK_FALSE(tree.read(folder.path / "link", 10));
  CHECK_FALSE(tree.read(folder.path / "sub", 10));
  CHECK_FALSE(tree.list(folder.path / "plain"));
}

TEST_CASE("names that are no line of text are listed as they are, and refused as names") {
  const TemporaryFolder folder;
  fs::create_directory(folder.path / "odd");
  std::ofstream(folder.path / "odd" / "a\nb") << "x";
  std::ofstream(folder.path / "odd" / "c\xFF") << "x";
  PosixSourceTree tree;
  CHECK(tree.list(folder.path / "odd").value() == std::vector<std::string>{"a\nb", "c\xFF"});
  Diagnostics diagnostics;
  const LoadedSources loaded = load_sources(parsed("version: 1\ncopy: [{from: odd, to: x}]\n"),
                                            folder.path / "Fusefile", tree, {}, diagnostics);
  CHECK(loaded.copied.empty());
  CHECK(diagnostics.all().size() == 2);
}

// Acts as a user who may not read everything, until it goes.
class Unprivileged {
 public:
  Unprivileged() { REQUIRE((was_ != 0 || ::seteuid(nobody) == 0)); }
  ~Unprivileged() {
    if (was_ == 0) static_cast<void>(::seteuid(was_));
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  static constexpr uid_t nobody = 65534;
  uid_t was_ = ::geteuid();
};

TEST_CASE("files and folders that the user may not read are named, each of them") {
  const TemporaryFolder folder;
  fs::create_directories(folder.path / "src/closed");
  for (const char* name : {"src/open", "src/mine", "src/closed/x", "body"}) {
    std::ofstream(folder.path / name) << "x";
  }
  REQUIRE(::chmod(folder.path.c_str(), 0755) == 0);
  for (const char* name : {"src/mine", "src/closed", "body"}) {
    REQUIRE(::chmod((folder.path / name).c_str(), 0) == 0);
  }
  PosixSourceTree tree;
  Diagnostics diagnostics;
  const Fusefile file =
      parsed("version: 1\ncopy: [{from: src, to: x}]\nfiles: [{path: f, source: body}]\n");
  LoadedSources loaded;
  {
    const Unprivileged now;
    loaded = load_sources(file, folder.path / "Fusefile", tree, {}, diagnostics);
  }
  std::string problems;
  for (const Diagnostic& d : diagnostics.all()) problems += cat(d.text(), "\n");
  const std::string at = folder.path.native();
  CHECK(problems == cat("copy[0].from: cannot read \"closed\": ", at,
                        "/src/closed: Permission denied\n"
                        "copy[0].from: cannot read \"mine\": ",
                        at,
                        "/src/mine: Permission denied\n"
                        "files[0].source: cannot read \"body\": ",
                        at, "/body: Permission denied\n"));
  CHECK(loaded.copied.size() == 1);
  REQUIRE(::chmod((folder.path / "src/closed").c_str(), 0755) == 0);
}

}  // namespace
}  // namespace fuse
