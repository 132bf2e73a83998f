#include "guest/channel/sync.h"

#include <algorithm>

#include "base/ids.h"
#include "base/text.h"

namespace fuse {

namespace {

bool is_high(char byte) {
  return (static_cast<unsigned char>(byte) & 0x80U) != 0;
}

}  // namespace

std::string new_sync_nonce() {
  std::string nonce;
  do {
    nonce = random_bytes(sync_nonce_size);
    for (char& byte : nonce) byte = static_cast<char>(static_cast<unsigned char>(byte) & 0x7FU);
  } while (nonce == restart_nonce());
  return nonce;
}

std::string_view restart_nonce() {
  static constexpr char zeros[sync_nonce_size] = {};
  return {zeros, sync_nonce_size};
}

std::string sync_message(std::string_view nonce) {
  return cat(sync_mark, nonce);
}

std::size_t sync_mark_tail(std::string_view bytes) {
  std::size_t size = std::min(bytes.size(), sync_mark.size() - 1);
  while (size > 0 && !bytes.ends_with(sync_mark.substr(0, size))) --size;
  return size;
}

void SyncScanner::feed(std::string_view bytes) {
  buffer_ += bytes;
}

std::optional<SyncScanner::Piece> SyncScanner::next() {
  if (in_nonce_) return next_nonce();
  const std::size_t mark = buffer_.find(sync_mark);
  if (mark != std::string::npos) {
    buffer_.erase(0, mark + sync_mark.size());
    in_nonce_ = true;
    return next_nonce();
  }
  const std::size_t held = sync_mark_tail(buffer_);
  if (buffer_.size() == held) return std::nullopt;
  Piece piece{.bytes = buffer_.substr(0, buffer_.size() - held)};
  buffer_.erase(0, piece.bytes.size());
  return piece;
}

std::optional<SyncScanner::Piece> SyncScanner::next_nonce() {
  const std::string_view seen = std::string_view(buffer_).substr(0, sync_nonce_size);
  const auto cut = std::ranges::find_if(seen, is_high);
  const bool whole = cut == seen.end();
  if (whole && seen.size() < sync_nonce_size) return std::nullopt;
  in_nonce_ = false;
  const auto size = static_cast<std::size_t>(cut - seen.begin());
  Piece piece{.nonce = whole ? std::string(seen) : std::string()};
  buffer_.erase(0, size);
  return piece;
}

}  // namespace fuse
