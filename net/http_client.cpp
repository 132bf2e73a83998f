#include "net/http_client.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "net/curl_session.h"
#include "net/listener.h"
#include "net/socket_stream.h"
#include "net/upgrade_call.h"
#include "net/url.h"

namespace fuse {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t most_error_body = 64U << 10U;

bool is_this_machine(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

bool is_success(int status) {
  return status >= 200 && status < 300;
}

std::string authority_of(const Url& url) {
  const bool v6 = url.host.find(':') != std::string::npos;
  const std::string host = v6 ? cat("[", url.host, "]") : url.host;
  return url.port.empty() ? host : cat(host, ":", url.port);
}

std::string ca_advice() {
  std::vector<std::string> tried;
  for (const fs::path& file : default_ca_files()) tried.push_back(file.native());
  return cat("no file of trusted certificates was found; tried ", join(tried, ", "));
}

class CurlHttpClient final : public HttpClient {
 public:
  CurlHttpClient(HttpClientOptions options, Url url)
      : options_(std::move(options)), url_(std::move(url)) {}

  Result<HttpReply> send(const HttpCall& call) override;
  Result<HttpStreamReply> stream(const HttpCall& call, const HttpSink& sink) override;
  Result<HttpUpgradeReply> upgrade(const HttpCall& call, std::string_view protocol) override;
  [[nodiscard]] std::string place() const override { return place_; }

 private:
  // A session ready for `call`, with what its options point to.
  struct Prepared {
    std::unique_ptr<CurlSession> session{};
    SocketName socket{};
  };

  Result<Prepared> prepare(const HttpCall& call);
  Result<fs::path> ca_file() const;
  HttpHeaders headers_of(const HttpCall& call) const;
  Error unreachable(std::string_view why) const {
    return {ErrorCode::unreachable, cat("cannot reach ", place_, ": ", why)};
  }
  Error failure_of(const CurlOutcome& outcome, const HttpCall& call) const;

  HttpClientOptions options_;
  Url url_;
  std::string authority_ = authority_of(url_);
  std::string base_ = cat(url_.scheme, "://", authority_, url_.path);
  std::string place_ =
      options_.unix_socket.empty() ? base_ : cat("unix:", options_.unix_socket.native());
  CurlSessionPool pool_{};
};

Result<fs::path> CurlHttpClient::ca_file() const {
  if (!options_.ca_file.empty()) return options_.ca_file;
  for (const fs::path& file : default_ca_files()) {
    std::error_code ignored;
    if (fs::exists(file, ignored)) return file;
  }
  return unreachable(ca_advice());
}

HttpHeaders CurlHttpClient::headers_of(const HttpCall& call) const {
  HttpHeaders headers = call.headers;
  if (!options_.token.empty() && !headers.has("Authorization")) {
    headers.add("Authorization", cat("Bearer ", options_.token));
  }
  if (!headers.has("User-Agent")) headers.add("User-Agent", options_.user_agent);
  return headers;
}

Result<CurlHttpClient::Prepared> CurlHttpClient::prepare(const HttpCall& call) {
  Prepared prepared;
  auto session = pool_.take();
  if (!session) return session.error();
  prepared.session = *std::move(session);
  CurlSession& curl = *prepared.session;
  curl.set_url(cat(base_, call.target));
  curl.set_connect_timeout(options_.connect_timeout);
  curl.set_direct(!options_.unix_socket.empty() || is_this_machine(url_.host));
  if (!options_.unix_socket.empty()) {
    auto name = short_socket_name(options_.unix_socket);
    if (!name) return unreachable(name.error().message);
    prepared.socket = *std::move(name);
    curl.set_unix_socket(prepared.socket.name);
  }
  if (base_.starts_with("https:")) {
    if (options_.verify_tls) {
      const auto file = ca_file();
      if (!file) return file.error();
      curl.set_trusted(*file);
    } else {
      curl.trust_anyone();
    }
  }
  return prepared;
}

Error CurlHttpClient::failure_of(const CurlOutcome& outcome, const HttpCall& call) const {
  switch (outcome.end) {
    case CurlOutcome::End::stopped:
      return {ErrorCode::unavailable, cat("the call to ", place_, " was stopped")};
    case CurlOutcome::End::too_slow: {
      const auto limit = call.timeout.value_or(options_.timeout);
      return unreachable(cat("no answer within ", limit.count(), " ms"));
    }
    case CurlOutcome::End::done:
    case CurlOutcome::End::silent:
    case CurlOutcome::End::failed:
      break;
  }
  return unreachable(outcome.why);
}

Result<HttpReply> CurlHttpClient::send(const HttpCall& call) {
  auto prepared = prepare(call);
  if (!prepared) return prepared.error();
  CurlTransfer transfer;
  transfer.method = call.method;
  transfer.headers = headers_of(call);
  transfer.body = call.body;
  transfer.stop = call.stop;
  transfer.time_for_all = call.timeout.value_or(options_.timeout);
  HttpReply reply;
  bool too_large = false;
  transfer.on_body = [&](int status, std::string_view bytes) {
    const std::size_t most = is_success(status) ? options_.most_reply : most_error_body;
    const std::size_t room = most - std::min(most, reply.body.size());
    reply.body += bytes.substr(0, room);
    // Of an error text what fits is enough; the rest is read and dropped.
    too_large = is_success(status) && bytes.size() > room;
    return !too_large;
  };
  CurlOutcome outcome = prepared->session->run(transfer);
  if (too_large) {
    return Error{ErrorCode::payload_too_large,
                 cat("the answer of ", place_, " is larger than ", options_.most_reply, " bytes")};
  }
  if (outcome.end != CurlOutcome::End::done) return failure_of(outcome, call);
  pool_.give_back(std::move(prepared->session));
  reply.status = outcome.status;
  reply.headers = std::move(outcome.headers);
  return reply;
}

Result<HttpStreamReply> CurlHttpClient::stream(const HttpCall& call, const HttpSink& sink) {
  auto prepared = prepare(call);
  if (!prepared) return prepared.error();
  CurlTransfer transfer;
  transfer.method = call.method;
  transfer.headers = headers_of(call);
  transfer.body = call.body;
  transfer.stop = call.stop;
  transfer.time_for_head = call.timeout.value_or(options_.timeout);
  transfer.time_without_bytes = call.idle_timeout;
  HttpStreamReply reply;
  bool sink_is_done = false;
  transfer.on_body = [&](int status, std::string_view bytes) {
    if (is_success(status)) {
      sink_is_done = !sink(bytes);
      return !sink_is_done;
    }
    const std::size_t room = most_error_body - std::min(most_error_body, reply.head.body.size());
    reply.head.body += bytes.substr(0, room);
    return true;
  };
  CurlOutcome outcome = prepared->session->run(transfer);
  if (outcome.status == 0) return failure_of(outcome, call);
  reply.head.status = outcome.status;
  reply.head.headers = std::move(outcome.headers);
  if (outcome.end == CurlOutcome::End::done) {
    pool_.give_back(std::move(prepared->session));
  } else if (sink_is_done || outcome.end == CurlOutcome::End::stopped) {
    reply.end = HttpStreamReply::End::stopped;
  } else {
    reply.end = HttpStreamReply::End::lost;
    reply.why = outcome.end == CurlOutcome::End::silent
                    ? cat(place_, " sent nothing for ", call.idle_timeout->count(), " ms")
                    : cat("the connection to ", place_, " was lost: ", outcome.why);
  }
  return reply;
}

Result<HttpUpgradeReply> CurlHttpClient::upgrade(const HttpCall& call, std::string_view protocol) {
  const milliseconds timeout = call.timeout.value_or(options_.timeout);
  auto prepared = prepare(call);
  if (!prepared) return prepared.error();
  CurlTransfer connect;
  connect.connect_only = true;
  connect.stop = call.stop;
  connect.time_for_all = timeout;
  const CurlOutcome outcome = prepared->session->run(connect);
  if (outcome.end != CurlOutcome::End::done) return failure_of(outcome, call);

  auto stream = std::make_unique<SocketStream>(make_curl_transport(std::move(prepared->session)));
  const std::stop_callback stop(call.stop, [&] { stream->close(); });
  HttpHeaders headers{{"Host", authority_}};
  for (const auto& [name, value] : headers_of(call).fields()) headers.add(name, value);
  headers.set("Connection", "Upgrade");
  headers.set("Upgrade", std::string(protocol));
  auto reply = ask_for_upgrade(*stream, {.method = call.method,
                                         .target = cat(url_.path, call.target),
                                         .headers = std::move(headers),
                                         .most_body = most_error_body,
                                         .timeout = timeout});
  if (!reply && call.stop.stop_requested()) {
    return Error{ErrorCode::unavailable, cat("the call to ", place_, " was stopped")};
  }
  if (!reply) return unreachable(reply.error().message);
  if (reply->status != 101) return HttpUpgradeReply{*std::move(reply), nullptr};
  return HttpUpgradeReply{*std::move(reply), std::move(stream)};
}

}  // namespace

std::vector<fs::path> default_ca_files() {
  return {
      "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Alpine, Arch
      "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora, RHEL
      "/etc/ssl/ca-bundle.pem",              // openSUSE
  };
}

Result<std::unique_ptr<HttpClient>> make_http_client(HttpClientOptions options) {
  Url url{"http", "localhost", {}, {}};
  if (options.unix_socket.empty()) {
    auto parsed = parse_url(options.base_url);
    if (!parsed) return parsed.error();
    url = *std::move(parsed);
  }
  return std::unique_ptr<HttpClient>(
      std::make_unique<CurlHttpClient>(std::move(options), std::move(url)));
}

}  // namespace fuse
