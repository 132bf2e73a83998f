#include "hostmode/vm_record.h"

#include "base/posix_host.h"
#include "base/text.h"
#include "tests/catch.h"
#include "tests/hostmode/sample_record.h"
#include "tests/hostmode/test_dir.h"

namespace fuse {
namespace {

// The text with the first `from` replaced.
std::string altered(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("a record comes back from its text as it was") {
  VmRecord record = sample_record();
  record.devices = {{.kind = "pci", .address = "0000:41:00.0", .uuid = "GPU-1", .group = "23"},
                    {.kind = "mdev", .address = "c0ffee", .uuid = "MIG-1", .group = ""}};
  record.argv = {"qemu-system-x86_64", "-name", "guest=a,,b"};
  record.process = {4711, 123456789, "boot"};
  record.state = VmState::ended;
  record.destroying = true;
  record.reason = "QEMU was killed by signal 9";

  const auto back = parse_vm_record(to_text(record));

  REQUIRE(back);
  CHECK(to_text(*back) == to_text(record));
  CHECK(back->devices.size() == 2);
  CHECK(back->process.start_time == 123456789);
  CHECK(back->destroying);
}

TEST_CASE("a record is whole or damaged, never filled in") {
  const std::string text = to_text(sample_record());

  // Every single field is needed.
  for (const std::string& line : split(text, '\n')) {
    if (line.find("\": ") == std::string::npos || line.find("schema") != std::string::npos)
      continue;
    const std::string key(trim(split(line, ':')[0]));
    INFO("without " << key);
    CHECK_FALSE(parse_vm_record(altered(text, key, "\"other\"")));
  }
  // Every cut of it is noticed.
  for (std::size_t length = 0; length + 2 < text.size(); ++length) {
    INFO("cut to " << length);
    CHECK_FALSE(parse_vm_record(text.substr(0, length)));
  }
  const auto wrong_state = parse_vm_record(altered(text, "\"creating\"", "\"asleep\""));
  REQUIRE_FALSE(wrong_state);
  CHECK(wrong_state.error().message ==
        "the record is damaged: state: has the unknown value \"asleep\"");
}

TEST_CASE("a record of a newer schema is refused, naming both numbers") {
  const auto newer =
      parse_vm_record(altered(to_text(sample_record()), "\"schema\": 1", "\"schema\": 2"));

  REQUIRE_FALSE(newer);
  CHECK(newer.error().code == ErrorCode::unimplemented);
  CHECK(newer.error().message ==
        "the record has schema 2, this program knows 1: it was written by a newer version");
}

TEST_CASE("a record in another VM's folder is damaged") {
  const TestDir scratch;
  const StatePaths paths(scratch.path());
  PosixHost host;
  VmRecord record = sample_record();
  const std::string other = "01ARZ3NDEKTSV4RRFFQ69G5FB0";
  write_text(paths.vm(other, vm_file::record), to_text(record));
  fs::create_directories(paths.vm(record.uid));
  REQUIRE(write_vm_record(host, paths, record));

  CHECK(read_vm_record(host, paths, record.uid));
  CHECK_FALSE(read_vm_record(host, paths, other));
}

TEST_CASE("a VM's id is its name in lower case with dashes for the rest") {
  CHECK(vm_id_of("fuse-train") == "fuse-train");
  CHECK(vm_id_of("My_App") == "my-app");
  CHECK(vm_id_of("a  b//c") == "a-b-c");
  CHECK(vm_id_of("--x--") == "x");
  CHECK(vm_id_of("_-_") == "vm");
  CHECK(vm_id_of("") == "vm");
  CHECK(vm_id_of("a--b") == "a--b");
  CHECK(vm_id_of("\xC3\xA4x") == "x");
}

TEST_CASE("only the one spelling of a ULID is a uid") {
  CHECK(is_uid("01ARZ3NDEKTSV4RRFFQ69G5FAV"));
  CHECK_FALSE(is_uid("01arz3ndektsv4rrffq69g5fav"));
  CHECK_FALSE(is_uid("81ARZ3NDEKTSV4RRFFQ69G5FAV"));
  CHECK_FALSE(is_uid("01ARZ3NDEKTSV4RRFFQ69G5FA"));
  CHECK_FALSE(is_uid("../../../../../../../../ab"));
  CHECK_FALSE(is_uid(""));
}

}  // namespace
}  // namespace fuse
