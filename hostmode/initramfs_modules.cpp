#include "hostmode/initramfs_modules.h"

#include <elf.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "hostmode/elf_bytes.h"

namespace fuse {
namespace {

Error not_a_module(std::string_view why) {
  return Error{ErrorCode::invalid_argument, cat("not a kernel module: ", why)};
}

std::string_view text_at(std::string_view table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const std::string_view rest = table.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

// The section `wanted`, empty when there is none.
std::string_view find_section(std::string_view ko, const Elf64_Ehdr& header,
                              std::string_view wanted) {
  const auto section = [&](std::uint64_t index) {
    return read_at<Elf64_Shdr>(ko, header.e_shoff + index * sizeof(Elf64_Shdr));
  };
  const auto names_section = section(header.e_shstrndx);
  if (!names_section) return {};
  const auto names = slice(ko, names_section->sh_offset, names_section->sh_size);
  if (!names) return {};
  for (std::uint64_t index = 0; index < header.e_shnum; ++index) {
    const auto candidate = section(index);
    if (!candidate) return {};
    if (text_at(*names, candidate->sh_name) != wanted) continue;
    return slice(ko, candidate->sh_offset, candidate->sh_size).value_or(std::string_view());
  }
  return {};
}

// Depth first, so that what is needed comes first.
class LoadOrder {
 public:
  explicit LoadOrder(const ModuleLookup& dependencies_of) : dependencies_of_(dependencies_of) {}

  Result<void> add(const std::string& name) {
    if (std::ranges::find(order_, name) != order_.end()) return {};
    if (!underway_.insert(name).second) {
      return Error{ErrorCode::invalid_argument, cat("kernel module ", name, " depends on itself")};
    }
    const auto needs = dependencies_of_(name);
    if (!needs) return in_context(cat("kernel module ", name), needs.error());
    for (const std::string& need : *needs) {
      if (auto done = add(need); !done) return done;
    }
    underway_.erase(name);
    order_.push_back(name);
    return {};
  }

  [[nodiscard]] std::vector<std::string> take() { return std::move(order_); }

 private:
  const ModuleLookup& dependencies_of_;
  std::set<std::string> underway_{};
  std::vector<std::string> order_{};
};

}  // namespace

std::string module_name_of(std::string_view file) {
  const std::size_t slash = file.rfind('/');
  if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
  std::string name(file.substr(0, file.find('.')));
  std::ranges::replace(name, '-', '_');
  return name;
}

Result<std::vector<std::string>> module_dependencies(std::string_view ko) {
  const auto header = read_at<Elf64_Ehdr>(ko, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
    return not_a_module("no ELF file");
  }
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
      header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff > ko.size()) {
    return not_a_module("not for a 64-bit little-endian machine, or damaged");
  }
  const std::string_view info = find_section(ko, *header, ".modinfo");
  if (info.empty()) return not_a_module("no section .modinfo");
  constexpr std::string_view key = "depends=";
  for (const std::string& line : split(info, '\0')) {
    if (!line.starts_with(key)) continue;
    std::vector<std::string> names;
    for (const std::string& name : split(std::string_view(line).substr(key.size()), ',')) {
      if (!name.empty()) names.push_back(module_name_of(name));
    }
    return names;
  }
  return not_a_module("it does not say what it depends on");
}

Result<std::vector<std::string>> module_load_order(std::span<const std::string> wanted,
                                                   const ModuleLookup& dependencies_of) {
  LoadOrder order(dependencies_of);
  for (const std::string& name : wanted) {
    if (auto done = order.add(module_name_of(name)); !done) return done.error();
  }
  return order.take();
}

}  // namespace fuse
