#include "cmd/tar.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"

namespace fuse::cmd {

namespace {

constexpr std::size_t block = 512;
// Of names and what describes them: more than any path can have.
constexpr std::uint64_t most_text = 256U << 10U;

// A field of the header: where it is, and how long.
struct Field {
  std::size_t at;
  std::size_t size;
};
constexpr Field name_field{0, 100};
constexpr Field mode_field{100, 8};
constexpr Field uid_field{108, 8};
constexpr Field gid_field{116, 8};
constexpr Field size_field{124, 12};
constexpr Field mtime_field{136, 12};
constexpr Field sum_field{148, 8};
constexpr std::size_t kind_at = 156;
constexpr Field target_field{157, 100};
constexpr Field magic_field{257, 6};
constexpr Field prefix_field{345, 155};
constexpr std::string_view posix_magic("ustar\0", 6);

Error not_tar(std::string_view what) {
  return {ErrorCode::internal, cat("what came is no archive: ", what)};
}

std::string_view bytes_of(std::string_view header, Field field) {
  return header.substr(field.at, field.size);
}

std::string text_of(std::string_view header, Field field) {
  const std::string_view bytes = bytes_of(header, field);
  return std::string(bytes.substr(0, bytes.find('\0')));
}

// Octal digits, or, with the first bit set, the number itself.
std::optional<std::uint64_t> number_of(std::string_view bytes) {
  std::uint64_t value = 0;
  if ((static_cast<unsigned char>(bytes.front()) & 0x80U) != 0) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      if (value > (UINT64_MAX >> 8U)) return std::nullopt;
      value = (value << 8U) | (i == 0 ? byte & 0x7fU : byte);
    }
    return value;
  }
  for (const char c : trim(bytes.substr(0, bytes.find('\0')))) {
    if (c < '0' || c > '7' || value > (UINT64_MAX >> 3U)) return std::nullopt;
    value = (value << 3U) | static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

void put_number(std::string& header, Field field, std::uint64_t value) {
  const std::size_t digits = field.size - 1;
  if (digits * 3 < 64 && (value >> (digits * 3)) != 0) {
    header[field.at] = static_cast<char>(0x80);
    for (std::size_t i = field.size - 1; i > 0; --i, value >>= 8U) {
      header[field.at + i] = static_cast<char>(value & 0xffU);
    }
    return;
  }
  for (std::size_t i = digits; i > 0; --i, value >>= 3U) {
    header[field.at + i - 1] = static_cast<char>('0' + (value & 7U));
  }
}

std::uint64_t sum_of(std::string_view header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const bool in_sum = i >= sum_field.at && i < sum_field.at + sum_field.size;
    sum += in_sum ? static_cast<unsigned char>(' ') : static_cast<unsigned char>(header[i]);
  }
  return sum;
}

std::string plain_header(const TarEntry& entry, char kind) {
  std::string header(block, '\0');
  const auto put_text = [&header](Field field, std::string_view text) {
    const std::size_t size = std::min(text.size(), field.size);
    header.replace(field.at, size, text.substr(0, size));
  };
  put_text(name_field, entry.path);
  put_number(header, mode_field, entry.mode & 07777U);
  put_number(header, uid_field, 0);
  put_number(header, gid_field, 0);
  put_number(header, size_field, entry.size);
  put_number(header, mtime_field,
             static_cast<std::uint64_t>(std::max<std::int64_t>(entry.mtime, 0)));
  header[kind_at] = kind;
  put_text(target_field, entry.target);
  put_text(magic_field, std::string_view("ustar ", 6));
  header[263] = ' ';
  put_number(header, {sum_field.at, sum_field.size - 1}, sum_of(header));
  header[sum_field.at + sum_field.size - 1] = ' ';
  return header;
}

// An entry whose bytes are the name of the next.
std::string long_text(char kind, std::string_view text) {
  const std::uint64_t size = text.size() + 1;
  return cat(plain_header({.path = "././@LongLink", .size = size}, kind), text,
             std::string(1, '\0'), tar_padding(size));
}

char kind_of(TarEntry::Type type) {
  switch (type) {
    case TarEntry::Type::folder:
      return '5';
    case TarEntry::Type::symlink:
      return '2';
    case TarEntry::Type::hardlink:
      return '1';
    case TarEntry::Type::other:
      return '6';
    case TarEntry::Type::file:
      break;
  }
  return '0';
}

TarEntry::Type type_of(char kind, std::string_view name) {
  switch (kind) {
    case '\0':
    case '0':
    case '7':
      // Archives from before there was a kind for them.
      return name.ends_with('/') ? TarEntry::Type::folder : TarEntry::Type::file;
    case '1':
      return TarEntry::Type::hardlink;
    case '2':
      return TarEntry::Type::symlink;
    case '5':
      return TarEntry::Type::folder;
    default:
      return TarEntry::Type::other;
  }
}

}  // namespace

std::string tar_header(const TarEntry& entry) {
  std::string out;
  if (entry.target.size() > target_field.size) out += long_text('K', entry.target);
  if (entry.path.size() > name_field.size) out += long_text('L', entry.path);
  return out + plain_header(entry, kind_of(entry.type));
}

std::string tar_padding(std::uint64_t size) {
  const std::size_t over = size % block;
  return std::string(over == 0 ? 0 : block - over, '\0');
}

std::string tar_end() {
  return std::string(2 * block, '\0');
}

Result<void> TarReader::feed(std::string_view bytes) {
  // Behind its end an archive is filled up with what nobody reads.
  while (!bytes.empty() && !complete_) {
    const std::size_t size = take(bytes);
    if (auto used = use(bytes.substr(0, size)); !used) return used;
    bytes.remove_prefix(size);
  }
  return {};
}

// How many of the bytes belong to the part at hand.
std::size_t TarReader::take(std::string_view bytes) {
  const std::uint64_t wanted = left_ > 0 ? left_ : padding_;
  return static_cast<std::size_t>(std::min<std::uint64_t>(wanted, bytes.size()));
}

Result<void> TarReader::use(std::string_view bytes) {
  if (left_ == 0) {
    padding_ -= bytes.size();
  } else {
    left_ -= bytes.size();
    if (part_ == Part::file) {
      if (auto done = sink_.data(bytes); !done) return done;
    } else if (part_ != Part::skipped) {
      text_ += bytes;
    }
    if (left_ == 0) {
      if (auto done = finish_part(); !done) return done;
    }
  }
  if (left_ > 0 || padding_ > 0) return {};
  part_ = Part::header;
  text_.clear();
  left_ = block;
  return {};
}

Result<void> TarReader::finish_part() {
  const auto name = [this] { return text_.substr(0, text_.find('\0')); };
  switch (part_) {
    case Part::header:
      return read_header();
    case Part::file:
      return sink_.end();
    case Part::long_name:
      next_path_ = name();
      return {};
    case Part::long_target:
      next_target_ = name();
      return {};
    case Part::extended:
      return read_extended();
    case Part::skipped:
      break;
  }
  return {};
}

Result<void> TarReader::read_header() {
  if (text_.find_first_not_of('\0') == std::string::npos) {
    complete_ = true;
    return {};
  }
  const auto sum = number_of(bytes_of(text_, sum_field));
  if (!sum || *sum != sum_of(text_)) return not_tar("the sum of a header is wrong");
  const auto size = number_of(bytes_of(text_, size_field));
  const auto mode = number_of(bytes_of(text_, mode_field));
  if (!size || !mode || *size > (UINT64_MAX >> 1U)) return not_tar("a header has no size");
  std::string name = text_of(text_, name_field);
  if (bytes_of(text_, magic_field) == posix_magic) {
    const std::string prefix = text_of(text_, prefix_field);
    if (!prefix.empty()) name = cat(prefix, "/", name);
  }
  entry_ = {.mode = static_cast<std::uint32_t>(*mode & 07777U), .size = *size};
  entry_.mtime =
      static_cast<std::int64_t>(number_of(bytes_of(text_, mtime_field)).value_or(0) & INT64_MAX);
  return begin(text_[kind_at], std::move(name), text_of(text_, target_field));
}

// What only leads to another entry.
std::optional<TarReader::Part> TarReader::text_part(char kind) {
  if (kind == 'L') return Part::long_name;
  if (kind == 'K') return Part::long_target;
  if (kind == 'x') return Part::extended;
  if (kind == 'g') return Part::skipped;
  return std::nullopt;
}

Result<void> TarReader::begin(char kind, std::string name, std::string target) {
  text_.clear();
  left_ = entry_.size;
  if (const auto text = text_part(kind)) {
    if (left_ > most_text) return not_tar("a name is too long");
    part_ = *text;
    padding_ = tar_padding(left_).size();
    return {};
  }
  entry_.type = type_of(kind, name);
  if (has_next_size_) entry_.size = left_ = next_size_;
  entry_.path = next_path_.empty() ? std::move(name) : std::move(next_path_);
  entry_.target = next_target_.empty() ? std::move(target) : std::move(next_target_);
  next_path_.clear();
  next_target_.clear();
  has_next_size_ = false;
  const bool has_bytes = entry_.type == TarEntry::Type::file;
  // Others have none of their own, whatever their size says of the file they stand for.
  if (!has_bytes && entry_.type != TarEntry::Type::other) entry_.size = left_ = 0;
  part_ = has_bytes ? Part::file : Part::skipped;
  padding_ = tar_padding(left_).size();
  if (auto done = sink_.entry(entry_); !done) return done;
  return has_bytes && left_ == 0 ? sink_.end() : Result<void>();
}

// Lines "LENGTH KEY=VALUE\n" about the entry to come.
Result<void> TarReader::read_extended() {
  std::string_view rest = text_;
  while (!rest.empty()) {
    const std::size_t blank = rest.find(' ');
    const auto length = parse_int(rest.substr(0, blank));
    const bool fits = blank != std::string_view::npos && length &&
                      static_cast<std::uint64_t>(*length) <= rest.size() &&
                      *length > static_cast<std::int64_t>(blank + 1);
    if (!fits) return not_tar("an extended header is malformed");
    const std::size_t end = static_cast<std::size_t>(*length);
    const std::string_view line = rest.substr(blank + 1, end - blank - 2);
    rest.remove_prefix(end);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return not_tar("an extended header is malformed");
    const std::string_view key = line.substr(0, equals);
    const std::string_view value = line.substr(equals + 1);
    if (key == "path") next_path_ = value;
    if (key == "linkpath") next_target_ = value;
    if (key == "size") {
      const auto size = parse_int(value);
      if (!size || *size < 0) return not_tar("an extended header has no size");
      next_size_ = static_cast<std::uint64_t>(*size);
      has_next_size_ = true;
    }
  }
  return {};
}

}  // namespace fuse::cmd
