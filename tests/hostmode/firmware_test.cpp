#include "hostmode/firmware.h"

#include <array>

#include "base/posix_host.h"
#include "base/text.h"
#include "hostmode/cloud_seed.h"
#include "hostmode/iso_image.h"
#include "hostmode/vm_paths.h"
#include "tests/catch.h"
#include "tests/hostmode/devices/sim_box.h"
#include "tests/hostmode/sample_record.h"
#include "tests/hostmode/test_dir.h"

namespace fuse {
namespace {

constexpr std::size_t sector = 2048;

// What a reader of ISO 9660 makes of an image: its label and its files.
struct IsoContent {
  std::string label{};
  std::map<std::string, std::string> files{};
};

std::uint32_t number_at(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i > 0; --i) {
    value = value << 8U | static_cast<unsigned char>(bytes[at + i - 1]);
  }
  // The other order follows.
  for (std::size_t i = 0; i < 4; ++i) CHECK(bytes[at + i] == bytes[at + 7 - i]);
  return value;
}

IsoContent read_iso(const std::string& image) {
  REQUIRE(image.size() > 21 * sector);
  REQUIRE(image.size() % sector == 0);
  const std::string volume = image.substr(16 * sector, sector);
  REQUIRE(volume.substr(0, 6) ==
          "\x01"
          "CD001");
  CHECK(number_at(volume, 80) == image.size() / sector);
  IsoContent content{.label = std::string(trim(std::string_view(volume).substr(40, 32)))};
  const std::string root = image.substr(number_at(volume, 156 + 2) * sector, sector);
  for (std::size_t at = 0; root[at] != '\0'; at += static_cast<unsigned char>(root[at])) {
    const std::string name = root.substr(at + 33, static_cast<unsigned char>(root[at + 32]));
    if (name.size() == 1) continue;  // the folder itself and the one above it
    content.files[name] = image.substr(number_at(root, at + 2) * sector, number_at(root, at + 10));
  }
  return content;
}

TEST_CASE("a disk image has the files it was given, under names that Linux reads back") {
  const std::string large(3 * sector + 1, 'x');
  const std::array<IsoFile, 3> files = {
      {{"user-data", "text"}, {"a-program", large}, {"empty.service", ""}}};
  const std::string image = iso_image("cidata", files);
  const IsoContent content = read_iso(image);
  CHECK(content.label == "cidata");
  CHECK(content.files == std::map<std::string, std::string>{{"A-PROGRAM.;1", large},
                                                            {"EMPTY.SERVICE;1", ""},
                                                            {"USER-DATA.;1", "text"}});
  CHECK(iso_image("cidata", files) == image);
}

TEST_CASE("every VM is an instance of its own to cloud-init, called as its id") {
  VmRecord vm = sample_record();
  CHECK(cloud_meta_data(vm) ==
        "{\"instance-id\": \"01ARZ3NDEKTSV4RRFFQ69G5FAV\", \"local-hostname\": \"fuse-train\"}\n");
  for (const std::string hostile :
       {"\"}\nbootcmd: [reboot]", "a: b # c", "$(reboot)", "\xff\x00;", "'", "- x", "null", "12"}) {
    vm.vm_id = vm_id_of(hostile);
    const std::string text = cloud_meta_data(vm);
    CHECK(text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "-\"{}:, \n") == std::string::npos);
    CHECK(std::count(text.begin(), text.end(), '"') == 8);
  }
}

TEST_CASE("the seed has what cloud-init reads, and the agent itself, byte for byte") {
  VmRecord vm = sample_record();
  const std::string program =
      "\x7f"
      "ELF" +
      std::string(5000, '\0') + "end";
  const IsoContent content = read_iso(cloud_seed_disk(vm, program));
  CHECK(content.label == "cidata");
  CHECK(content.files.size() == 4);
  CHECK(content.files.at("META-DATA.;1") == cloud_meta_data(vm));
  CHECK(content.files.at("FUSE-GUEST.;1") == program);
  CHECK(content.files.at("USER-DATA.;1").starts_with("#cloud-config\n"));
  CHECK(content.files.at("FUSE-GUEST.SERVICE;1").starts_with("[Unit]\n"));
  // No more of a VM than its name and uid.
  vm.idempotency_key = vm.cluster = vm.region = "other";
  CHECK(cloud_seed_disk(vm, program) == cloud_seed_disk(sample_record(), program));
}

TEST_CASE("firmware is found where Debian has it, or where it is said to be") {
  SimBox box;
  const auto none = find_firmware(box, {});
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ErrorCode::internal);
  CHECK(none.error().message.find("(Debian: ovmf)") != std::string::npos);

  box.add_file("/usr/share/OVMF/OVMF_CODE.fd", "");
  box.add_file("/usr/share/OVMF/OVMF_VARS.fd", "");
  CHECK(find_firmware(box, {}).value().code == "/usr/share/OVMF/OVMF_CODE.fd");
  box.add_file("/usr/share/OVMF/OVMF_CODE_4M.fd", "");
  CHECK(find_firmware(box, {}).value().code == "/usr/share/OVMF/OVMF_CODE.fd");
  box.add_file("/usr/share/OVMF/OVMF_VARS_4M.fd", "");
  CHECK(find_firmware(box, {}).value().code == "/usr/share/OVMF/OVMF_CODE_4M.fd");
  CHECK(find_firmware(box, {}).value().vars == "/usr/share/OVMF/OVMF_VARS_4M.fd");

  CHECK(find_firmware(box, "/opt/bios.bin").error().message.find("has no CODE") !=
        std::string::npos);
  CHECK(find_firmware(box, "/opt/CODE.fd").error().message.starts_with("/opt/CODE.fd is missing"));
  box.add_file("/opt/CODE.fd", "");
  CHECK(find_firmware(box, "/opt/CODE.fd").error().message.starts_with("/opt/VARS.fd is missing"));
  box.add_file("/opt/VARS.fd", "");
  CHECK(find_firmware(box, "/opt/CODE.fd").value().vars == "/opt/VARS.fd");
}

}  // namespace
}  // namespace fuse
