#include "cmd/copy_place.h"

#include "base/text.h"
#include "tests/catch.h"

namespace fuse::cmd {

namespace {

std::string read(const std::string& text) {
  const auto place = parse_copy_place(text);
  if (!place) return cat("error: ", place.error().message);
  std::string out = cat(place->id, "|", place->path);
  if (place->contents) out += " contents";
  if (place->wants_folder) out += " folder";
  return out;
}

std::string target(const std::string& to, CopyKind kind, bool source_is_folder,
                   std::string_view name = "name") {
  const auto found = copy_target(parse_copy_place(to).value(), kind, source_is_folder, name);
  return found ? *found : cat("error: ", found.error().message);
}

}  // namespace

TEST_CASE("an end of a copy is a path here, one in an environment, or a stream") {
  CHECK(read("file") == "|file");
  CHECK(read("fuse-a:/out") == "fuse-a|/out");
  CHECK(read("fuse-a:/out/a:b") == "fuse-a|/out/a:b");
  CHECK(read("./a:b") == "|./a:b");
  CHECK(read("/a:b") == "|/a:b");
  CHECK(read(":b") == "|:b");
  CHECK(read("-") == "|-");
  CHECK(parse_copy_place("-")->is_stream());
  CHECK_FALSE(parse_copy_place("./-")->is_stream());
  CHECK_FALSE(parse_copy_place("a:/-")->is_stream());
  CHECK(read("a:/x\ny") == "a|/x\ny");
}

TEST_CASE("what stands at the end of a path says what is meant by it") {
  CHECK(read("dir/") == "|dir folder");
  CHECK(read("dir///") == "|dir folder");
  CHECK(read("dir/.") == "|dir contents folder");
  CHECK(read("a:/dir/./") == "a|/dir contents folder");
  CHECK(read(".") == "|. contents");
  CHECK(read("..") == "|..");
  CHECK(read("/") == "|/");
  CHECK(read("a:/") == "a|/");
  CHECK(read("a:/.") == "a|/ contents");
}

TEST_CASE("a path that names nothing is refused") {
  CHECK(read("") == "error: an empty path names no file");
  CHECK(read("a:") == "error: which file of a? There is nothing behind the colon");
  CHECK(read("a:out") == "error: a path in an environment begins with /: a:out");
  CHECK(read(std::string("a:/\0", 4)) == "error: a path holds no NUL");
}

TEST_CASE("a copy goes into a folder that is there, and else by the name it is given") {
  CHECK(target("dir", CopyKind::folder, false) == "dir/name");
  CHECK(target("/", CopyKind::folder, false) == "/name");
  CHECK(target("dir", CopyKind::folder, true) == "dir/name");
  CHECK(target("dir", CopyKind::folder, true, "") == "dir");
  CHECK(target("new", CopyKind::none, false) == "new");
  CHECK(target("new", CopyKind::none, true) == "new");
  CHECK(target("new/", CopyKind::none, true) == "new");
  CHECK(target("old", CopyKind::file, false) == "old");
  CHECK(target("old", CopyKind::dangling, false) == "old");
}

TEST_CASE("a place that cannot take it is refused in words") {
  CHECK(target("a:/x/y", CopyKind::no_folder, false) == "error: there is no folder a:/x");
  CHECK(target("x", CopyKind::no_folder, false) == "error: there is no folder .");
  CHECK(target("new/", CopyKind::none, false) == "error: there is no folder new");
  CHECK(target("old", CopyKind::file, true) == "error: old is not a folder");
  CHECK(target("old/", CopyKind::file, false) == "error: old is not a folder");
  CHECK(target("a:/dev/x", CopyKind::other, false) ==
        "error: a:/dev/x is neither a file nor a folder");
}

TEST_CASE("names and folders of paths") {
  CHECK(last_name("/a/b") == "b");
  CHECK(last_name("/") == "");
  CHECK(last_name("a") == "a");
  CHECK(parent_of("/a/b") == "/a");
  CHECK(parent_of("/a") == "/");
  CHECK(parent_of("a") == ".");
  CHECK(below("/", "a") == "/a");
  CHECK(below("/x", "a") == "/x/a");
}

}  // namespace fuse::cmd
