#include "base/crypto.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstdlib>

#include "base/fd.h"
#include "base/ids.h"
#include "base/text.h"

namespace fuse {

namespace {

constexpr std::size_t key_size = 32;
constexpr std::size_t nonce_size = 12;
constexpr std::size_t tag_size = 16;

// A digest or cipher of OpenSSL's own fails only out of memory or misbuilt.
void must(int openssl_result) {
  if (openssl_result != 1) std::abort();
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes_of(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, FreeCipher>;

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  must(EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_.get()), EVP_sha256(), nullptr));
}

void Sha256::Free::operator()(void* context) const {
  EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context));
}

void Sha256::update(std::string_view bytes) {
  must(EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_.get()), bytes.data(), bytes.size()));
}

std::string Sha256::finish() {
  std::string digest(32, '\0');
  must(EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_.get()), bytes_of(digest), nullptr));
  return hex_encode(digest);
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

Result<std::string> sha256_of_file(const fs::path& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error(cat("open ", file.native()), errno);
  Sha256 hash;
  std::string buffer(1U << 20U, '\0');
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got == 0) return hash.finish();
    if (got > 0) {
      hash.update(std::string_view(buffer).substr(0, static_cast<std::size_t>(got)));
    } else if (errno != EINTR) {
      return errno_error(cat("read ", file.native()), errno);
    }
  }
}

std::string seal(std::string_view key, std::string_view context, std::string_view plain) {
  assert(key.size() == key_size);
  const std::string nonce = random_bytes(nonce_size);
  std::string out = nonce;
  out.resize(nonce_size + plain.size() + tag_size);
  unsigned char* const text = bytes_of(out) + nonce_size;
  const Cipher cipher(EVP_CIPHER_CTX_new());
  int length = 0;
  must(
      EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, bytes_of(key), bytes_of(nonce)));
  must(EVP_EncryptUpdate(cipher.get(), nullptr, &length, bytes_of(context),
                         static_cast<int>(context.size())));
  must(EVP_EncryptUpdate(cipher.get(), text, &length, bytes_of(plain),
                         static_cast<int>(plain.size())));
  must(EVP_EncryptFinal_ex(cipher.get(), text + length, &length));
  must(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, tag_size, text + plain.size()));
  return out;
}

Result<std::string> open_sealed(std::string_view key, std::string_view context,
                                std::string_view sealed) {
  assert(key.size() == key_size);
  const Error refused{ErrorCode::unauthorized, "sealed value does not open with this key"};
  if (sealed.size() < nonce_size + tag_size) return refused;
  const std::string_view nonce = sealed.substr(0, nonce_size);
  const std::string_view text = sealed.substr(nonce_size, sealed.size() - nonce_size - tag_size);
  std::string tag(sealed.substr(sealed.size() - tag_size));
  std::string plain(text.size(), '\0');
  const Cipher cipher(EVP_CIPHER_CTX_new());
  int length = 0;
  must(
      EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, bytes_of(key), bytes_of(nonce)));
  must(EVP_DecryptUpdate(cipher.get(), nullptr, &length, bytes_of(context),
                         static_cast<int>(context.size())));
  must(EVP_DecryptUpdate(cipher.get(), bytes_of(plain), &length, bytes_of(text),
                         static_cast<int>(text.size())));
  must(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, tag_size, tag.data()));
  std::array<unsigned char, tag_size> rest{};
  if (EVP_DecryptFinal_ex(cipher.get(), rest.data(), &length) != 1) return refused;
  return plain;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace fuse
