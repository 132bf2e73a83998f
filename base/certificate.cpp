#include "base/certificate.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

#include "base/ids.h"
#include "base/text.h"

namespace fuse {

namespace {

template <auto function>
struct FreeBy {
  template <class T>
  void operator()(T* object) const {
    function(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, FreeBy<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, FreeBy<X509_EXTENSION_free>>;
using Number = std::unique_ptr<BIGNUM, FreeBy<BN_free>>;
using Memory = std::unique_ptr<BIO, FreeBy<BIO_free>>;

Error failed(std::string_view what) {
  return {ErrorCode::internal, cat("make a certificate: ", what)};
}

std::string text_of(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

std::string pem_of(X509* certificate) {
  const Memory out(BIO_new(BIO_s_mem()));
  return PEM_write_bio_X509(out.get(), certificate) == 1 ? text_of(out.get()) : std::string();
}

std::string pem_of(EVP_PKEY* key) {
  const Memory out(BIO_new(BIO_s_mem()));
  const int written =
      PEM_write_bio_PrivateKey_traditional(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return written == 1 ? text_of(out.get()) : std::string();
}

// 128 random bits, as RFC 5280 has a serial number tell certificates apart.
bool set_serial(X509* certificate) {
  const std::string bytes = random_bytes(16);
  const Number number(BN_bin2bn(reinterpret_cast<const unsigned char*>(bytes.data()),
                                static_cast<int>(bytes.size()), nullptr));
  return number != nullptr &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_names(X509* certificate, const CertificateSpec& spec) {
  X509_NAME* const name = X509_get_subject_name(certificate);
  const auto* const text = reinterpret_cast<const unsigned char*>(spec.common_name.c_str());
  if (X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, text, -1, -1, 0) != 1) return false;
  if (X509_set_issuer_name(certificate, name) != 1) return false;
  std::vector<std::string> addresses;
  for (const std::string& address : spec.ip_addresses) addresses.push_back(cat("IP:", address));
  if (addresses.empty()) return true;
  const Extension names(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, join(addresses, ",").c_str()));
  return names != nullptr && X509_add_ext(certificate, names.get(), -1) == 1;
}

bool set_times(X509* certificate, const CertificateSpec& spec) {
  const std::time_t from = std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(spec.from));
  return ASN1_TIME_set(X509_getm_notBefore(certificate), from) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), from + spec.lifetime.count()) != nullptr;
}

}  // namespace

Result<CertificateAndKey> make_self_signed(const CertificateSpec& spec) {
  if (spec.common_name.empty() || spec.common_name.size() > longest_common_name) {
    return failed(cat("the name \"", spec.common_name, "\" is not of 1 to 64 bytes"));
  }
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  if (key == nullptr || certificate == nullptr) return failed("no key");
  constexpr long version_3 = 2;
  const bool filled = X509_set_version(certificate.get(), version_3) == 1 &&
                      set_serial(certificate.get()) && set_times(certificate.get(), spec) &&
                      set_names(certificate.get(), spec) &&
                      X509_set_pubkey(certificate.get(), key.get()) == 1;
  if (!filled) return failed(cat("for ", spec.common_name));
  if (X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) return failed("not signed");
  CertificateAndKey made{.certificate = pem_of(certificate.get()), .key = pem_of(key.get())};
  if (made.certificate.empty() || made.key.empty()) return failed("not written");
  return made;
}

}  // namespace fuse
