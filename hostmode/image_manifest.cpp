#include "hostmode/image_manifest.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/crypto.h"
#include "base/json_reader.h"
#include "base/text.h"

namespace fuse {
namespace {

bool is_sha256(std::string_view text) {
  return text.size() == 64 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

using NamedBlob = std::pair<const char*, std::optional<BlobRef> ImageManifest::*>;
constexpr std::array<NamedBlob, 5> blobs{{{"disk", &ImageManifest::disk},
                                          {"kernel", &ImageManifest::kernel},
                                          {"direct_kernel", &ImageManifest::direct_kernel},
                                          {"modules", &ImageManifest::modules},
                                          {"root", &ImageManifest::root}}};

using NamedText = std::pair<const char*, std::string ImageManifest::*>;
constexpr std::array<NamedText, 10> texts{{{"name", &ImageManifest::name},
                                           {"boot", &ImageManifest::boot},
                                           {"init", &ImageManifest::init},
                                           {"os", &ImageManifest::os},
                                           {"arch", &ImageManifest::arch},
                                           {"kernel_version", &ImageManifest::kernel_version},
                                           {"driver_branch", &ImageManifest::driver_branch},
                                           {"agent", &ImageManifest::agent},
                                           {"built_by", &ImageManifest::built_by},
                                           {"created", &ImageManifest::created}}};

std::optional<BlobRef> read_blob(JsonReader& reader, const char* key) {
  const nlohmann::json* value = reader.object(key);
  if (value == nullptr) return std::nullopt;
  JsonReader fields(*value, key);
  BlobRef blob{.sha256 = fields.text("sha256").value_or(""), .size = 0};
  const auto size = fields.integer("size").value_or(-1);
  if (!is_sha256(blob.sha256)) reader.complain(key, "sha256 is not a digest");
  if (size < 0) reader.complain(key, "size is missing or negative");
  blob.size = static_cast<std::uint64_t>(std::max<std::int64_t>(size, 0));
  return blob;
}

Result<int> read_schema(JsonReader& reader) {
  const auto schema = reader.integer("schema");
  if (!schema || *schema < 1) {
    return Error{ErrorCode::invalid_argument, "not an image manifest: it has no schema number"};
  }
  if (*schema > ImageManifest::newest_schema) {
    return Error{ErrorCode::invalid_argument,
                 cat("image manifest of schema ", *schema, ", but this program knows only up to ",
                     ImageManifest::newest_schema)};
  }
  return static_cast<int>(*schema);
}

}  // namespace

std::vector<BlobRef> ImageManifest::files() const {
  std::vector<BlobRef> all;
  for (const auto& [key, member] : blobs) {
    if (this->*member) all.push_back(*(this->*member));
  }
  return all;
}

std::uint64_t ImageManifest::size() const {
  std::uint64_t sum = 0;
  for (const BlobRef& file : files()) sum += file.size;
  return sum;
}

std::string ImageManifest::sha256() const {
  std::string parts = cat("boot ", boot, "\ninit ", init, "\n");
  for (const auto& [key, member] : blobs) {
    if (this->*member) parts += cat(key, " ", (this->*member)->sha256, "\n");
  }
  return sha256_hex(parts);
}

std::string to_text(const ImageManifest& manifest) {
  nlohmann::json json{{"schema", manifest.schema},
                      {"size", manifest.size()},
                      {"sha256", manifest.sha256()},
                      {"disk_bytes", manifest.disk_bytes}};
  for (const auto& [key, member] : texts) json[key] = valid_utf8(manifest.*member);
  for (const auto& [key, member] : blobs) {
    const auto& blob = manifest.*member;
    if (blob) json[key] = {{"sha256", blob->sha256}, {"size", blob->size}};
  }
  return json.dump(2) + "\n";
}

Result<ImageManifest> parse_image_manifest(std::string_view text) {
  const auto json = parse_json(text);
  if (!json) return Error{ErrorCode::invalid_argument, "not an image manifest: invalid JSON"};
  JsonReader reader(*json, "");
  const auto schema = read_schema(reader);
  if (!schema) return schema.error();
  ImageManifest manifest;
  manifest.schema = *schema;
  for (const auto& [key, member] : texts) manifest.*member = reader.text(key).value_or("");
  for (const auto& [key, member] : blobs) manifest.*member = read_blob(reader, key);
  const auto disk_bytes = reader.integer("disk_bytes").value_or(0);
  if (disk_bytes < 0) reader.complain("disk_bytes", "must not be negative");
  manifest.disk_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(disk_bytes, 0));
  if (auto done = reader.finish(); !done) return in_context("image manifest", done.error());
  return manifest;
}

}  // namespace fuse
