#include "hostmode/iso_image.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fuse {
namespace {

constexpr std::size_t sector = 2048;
// The first sixteen are nobody's.
constexpr std::uint32_t descriptor_at = 16;
constexpr std::uint32_t little_path_table_at = 18;
constexpr std::uint32_t big_path_table_at = 19;
constexpr std::uint32_t root_at = 20;
constexpr std::uint32_t files_at = 21;
constexpr std::uint32_t path_table_size = 10;

std::string little(std::uint32_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xffU);
  return out;
}

std::string big(std::uint32_t value, int bytes) {
  std::string out = little(value, bytes);
  std::ranges::reverse(out);
  return out;
}

// Numbers are there in both orders.
std::string both(std::uint32_t value, int bytes) {
  return little(value, bytes) + big(value, bytes);
}

std::string padded(std::string_view text, std::size_t size, char with) {
  std::string out(text.substr(0, size));
  out.resize(size, with);
  return out;
}

// What the file system calls it: upper case, a dot, a version.
std::string stored_name(std::string_view name) {
  std::string out;
  for (const char c : name) out += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  if (out.find('.') == std::string::npos) out += '.';
  return out + ";1";
}

std::string directory_record(std::string_view name, std::uint32_t at, std::uint32_t size,
                             bool directory) {
  std::string out;
  out += '\0';  // no attributes of its own
  out += both(at, 4) + both(size, 4);
  out += std::string("\x46\x01\x01\0\0\0\0", 7);  // 1970-01-01
  out += directory ? '\x02' : '\0';
  out += std::string(2, '\0');  // not interleaved
  out += both(1, 2);            // the only volume
  out += static_cast<char>(name.size());
  out += name;
  if (out.size() % 2 == 0) out += '\0';
  return static_cast<char>(out.size() + 1) + out;
}

std::string root_record(std::string_view name) {
  return directory_record(name, root_at, sector, true);
}

std::string path_table(const std::string& root, const std::string& parent) {
  return std::string("\x01\0", 2) + root + parent + std::string(2, '\0');
}

std::string descriptor(std::string_view label, std::uint32_t sectors) {
  const std::string no_date = std::string(16, '0') + '\0';
  std::string out = std::string("\x01") + "CD001" + std::string("\x01\0", 2);
  out += padded("", 32, ' ') + padded(label, 32, ' ') + std::string(8, '\0');
  out += both(sectors, 4) + std::string(32, '\0');
  out += both(1, 2) + both(1, 2) + both(sector, 2);
  out += both(path_table_size, 4);
  out += little(little_path_table_at, 4) + little(0, 4) + big(big_path_table_at, 4) + big(0, 4);
  out += root_record(std::string_view("\0", 1));
  // Who made it, and notes on it.
  out += padded("", std::size_t{4} * 128 + std::size_t{3} * 37, ' ');
  out += no_date + no_date + no_date + no_date;
  out += '\x01';
  return padded(out, sector, '\0');
}

}  // namespace

std::string iso_image(std::string_view label, std::span<const IsoFile> files) {
  struct Stored {
    std::string name;
    std::string_view bytes;
  };
  std::vector<Stored> stored;
  for (const IsoFile& file : files) stored.push_back({stored_name(file.name), file.bytes});
  std::ranges::sort(stored, {}, &Stored::name);

  std::string root = root_record(std::string_view("\0", 1)) + root_record("\x01");
  std::uint32_t next = files_at;
  for (const Stored& file : stored) {
    root += directory_record(file.name, next, static_cast<std::uint32_t>(file.bytes.size()), false);
    next += static_cast<std::uint32_t>((file.bytes.size() + sector - 1) / sector);
  }

  std::string out(descriptor_at * sector, '\0');
  out.reserve(next * sector);
  out += descriptor(label, next);
  out += padded(std::string("\xff") + "CD001\x01", sector, '\0');
  out += padded(path_table(little(root_at, 4), little(1, 2)), sector, '\0');
  out += padded(path_table(big(root_at, 4), big(1, 2)), sector, '\0');
  out += padded(root, sector, '\0');
  for (const Stored& file : stored) {
    out += file.bytes;
    out.resize((out.size() + sector - 1) / sector * sector, '\0');
  }
  return out;
}

}  // namespace fuse
