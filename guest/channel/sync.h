#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

// Finding the beginning of a connection in a channel whose other end may still
// be sending bytes of an older one.
namespace fuse {

// All of its bytes are 0x80 or more, and its first occurs in it only once, so it
// neither overlaps itself nor runs into a header or a nonce.  "Every stream that
// append_frame() made is free of it" is what makes the search safe.
inline constexpr std::string_view sync_mark{
    "\xFF\xF5\xE6\xC1\xB8\xA3\xFC\x91\xD9\x84\xEE\xCF\x9B\xB2\xF8\xA7", 16};
inline constexpr std::size_t sync_nonce_size = 16;

// Sixteen random bytes below 0x80.
std::string new_sync_nonce();
// What an agent sends unasked when it starts: a connection made before is gone.
std::string_view restart_nonce();
// The mark and the nonce: what a connection begins with, from either side.
std::string sync_message(std::string_view nonce);

// How many bytes at the end of `bytes` are a beginning of the mark.
std::size_t sync_mark_tail(std::string_view bytes);

// Splits incoming bytes at sync messages.
class SyncScanner {
 public:
  struct Piece {
    // Ordinary bytes, or, when `nonce` is there, a sync message: all that came
    // before it, handed out or not, is of an older connection.  The nonce is empty
    // when it was cut short: that connection ended before it began.
    std::string bytes{};
    std::optional<std::string> nonce{};
  };

  void feed(std::string_view bytes);
  // The next piece, or nothing until more bytes come.  Bytes that may be the
  // beginning of a sync message are held back until they are known not to be.
  std::optional<Piece> next();

 private:
  std::optional<Piece> next_nonce();

  std::string buffer_{};
  bool in_nonce_ = false;
};

}  // namespace fuse
