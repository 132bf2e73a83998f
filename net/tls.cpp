#include "net/tls.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>

#include "base/text.h"
#include "net/sigpipe.h"

namespace fuse {

namespace {

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using Ssl = std::unique_ptr<SSL, FreeSsl>;
using SslContext = std::unique_ptr<SSL_CTX, FreeSsl>;

std::string openssl_text() {
  std::array<char, 256> text{};
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "TLS failed";
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

int as_length(std::size_t size) {
  return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
}

// An SSL object may not be used by two threads at once: each try holds the mutex,
// and no try blocks.
class TlsTransport final : public Transport {
 public:
  TlsTransport(Ssl ssl, Fd socket) : socket_(std::move(socket)), ssl_(std::move(ssl)) {
    const int flags = ::fcntl(socket_.get(), F_GETFL);
    if (flags >= 0) ::fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK);
    SSL_set_fd(ssl_.get(), socket_.get());
    SSL_set_accept_state(ssl_.get());
  }

  IoTry read(std::span<char> into) override {
    return attempt([&] { return SSL_read(ssl_.get(), into.data(), as_length(into.size())); });
  }

  IoTry write(std::string_view bytes) override {
    return attempt([&] { return SSL_write(ssl_.get(), bytes.data(), as_length(bytes.size())); });
  }

  void shutdown_write() override {
    (void)attempt([&] { return SSL_shutdown(ssl_.get()); });
  }

  [[nodiscard]] int fd() const override { return socket_.get(); }

 private:
  template <class Call>
  IoTry attempt(Call&& call) {
    const std::scoped_lock lock(mutex_);
    if (broken_) return {IoTry::Kind::broken, 0, "TLS failed before"};
    const SigpipeGuard guard;
    ERR_clear_error();
    const int result = call();
    if (result > 0) return {IoTry::Kind::moved, static_cast<std::size_t>(result), {}};
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return {IoTry::Kind::wait_readable, 0, {}};
      case SSL_ERROR_WANT_WRITE:
        return {IoTry::Kind::wait_writable, 0, {}};
      case SSL_ERROR_ZERO_RETURN:
        return {IoTry::Kind::end, 0, {}};
      default:
        // OpenSSL forbids any further call after one of these.
        broken_ = true;
        return {IoTry::Kind::broken, 0, openssl_text()};
    }
  }

  std::mutex mutex_;
  Fd socket_;
  Ssl ssl_;
  bool broken_ = false;
};

class OpensslServer final : public TlsServer {
 public:
  explicit OpensslServer(SslContext context) : context_(std::move(context)) {}

  std::unique_ptr<Transport> accept(Fd socket) override {
    return std::make_unique<TlsTransport>(Ssl(SSL_new(context_.get())), std::move(socket));
  }

 private:
  SslContext context_;
};

}  // namespace

Result<std::unique_ptr<TlsServer>> TlsServer::load(const TlsFiles& files) {
  SslContext context(SSL_CTX_new(TLS_server_method()));
  if (!context) return Error{ErrorCode::internal, openssl_text()};
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Clients that close without goodbye end the stream instead of breaking it: the
  // message's own framing says whether it was whole.
  SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1) {
    return Error{ErrorCode::invalid_argument,
                 cat("TLS certificate ", files.certificate.native(), ": ", openssl_text())};
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return Error{ErrorCode::invalid_argument,
                 cat("TLS key ", files.key.native(), ": ", openssl_text())};
  }
  return std::unique_ptr<TlsServer>(std::make_unique<OpensslServer>(std::move(context)));
}

}  // namespace fuse
