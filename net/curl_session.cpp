#include "net/curl_session.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "net/sigpipe.h"

namespace fuse {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t most_idle_sessions = 16;

// The handles are all void to the compiler, so each kind has a type of its own.
struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

std::unique_ptr<curl_slist, FreeList> header_list(const CurlTransfer& transfer) {
  curl_slist* list = nullptr;
  const auto add = [&](const std::string& line) { list = curl_slist_append(list, line.c_str()); };
  for (const auto& [name, value] : transfer.headers.fields()) {
    // libcurl reads "Name:" as "leave it out"; an empty value is written "Name;".
    add(value.empty() ? cat(name, ";") : cat(name, ": ", value));
  }
  if (!transfer.headers.has("Content-Type")) add("Content-Type:");
  return std::unique_ptr<curl_slist, FreeList>(list);
}

// What is seen of one transfer while it runs.
struct Progress {
  const CurlTransfer& transfer;
  CURL* easy;
  steady_clock::time_point started = steady_clock::now();
  steady_clock::time_point last_byte = started;
  HttpHeaders headers{};
  int status = 0;

  void take_header(std::string_view line) {
    last_byte = steady_clock::now();
    if (line.starts_with("HTTP/")) headers = {};  // also after a 100 Continue
    const std::size_t colon = line.find(':');
    const std::string_view text = trim(line);
    if (text.empty()) {
      long code = 0;
      curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
      if (code >= 200) status = static_cast<int>(code);
    } else if (colon != std::string_view::npos && !line.starts_with("HTTP/")) {
      headers.add(std::string(line.substr(0, colon)), std::string(trim(line.substr(colon + 1))));
    }
  }

  // Which limit is over, and when the next one will be.
  std::optional<CurlOutcome::End> overdue() const {
    const auto now = steady_clock::now();
    if (transfer.time_for_all && now - started >= *transfer.time_for_all) {
      return CurlOutcome::End::too_slow;
    }
    if (status == 0 && transfer.time_for_head && now - started >= *transfer.time_for_head) {
      return CurlOutcome::End::too_slow;
    }
    if (status != 0 && transfer.time_without_bytes &&
        now - last_byte >= *transfer.time_without_bytes) {
      return CurlOutcome::End::silent;
    }
    return std::nullopt;
  }
  int poll_time() const {
    auto next = steady_clock::now() + std::chrono::seconds(60);
    if (transfer.time_for_all) next = std::min(next, started + *transfer.time_for_all);
    if (status == 0 && transfer.time_for_head) {
      next = std::min(next, started + *transfer.time_for_head);
    }
    if (status != 0 && transfer.time_without_bytes) {
      next = std::min(next, last_byte + *transfer.time_without_bytes);
    }
    const auto left = std::chrono::ceil<milliseconds>(next - steady_clock::now());
    return static_cast<int>(std::max(left, milliseconds(0)).count());
  }
};

std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* progress) {
  static_cast<Progress*>(progress)->take_header({bytes, size * count});
  return size * count;
}

std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* context) {
  auto& progress = *static_cast<Progress*>(context);
  progress.last_byte = steady_clock::now();
  const bool goes_on = progress.transfer.on_body(progress.status, {bytes, size * count});
  return goes_on ? size * count : size * count + 1;  // another number than given: an error
}

class Session final : public CurlSession {
 public:
  Session(CURL* easy, CURLM* multi) : multi_(multi), easy_(easy) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() override { leave(); }

  void reset() override;
  void set_url(const std::string& url) override { set(CURLOPT_URL, url.c_str()); }
  void set_unix_socket(const std::string& path) override {
    set(CURLOPT_UNIX_SOCKET_PATH, path.c_str());
  }
  void set_connect_timeout(milliseconds timeout) override {
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(timeout.count()));
  }
  void set_direct(bool direct) override {
    if (direct) set(CURLOPT_PROXY, "");
  }
  void set_trusted(const fs::path& ca_file) override { set(CURLOPT_CAINFO, ca_file.c_str()); }
  void trust_anyone() override {
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
  }
  CurlOutcome run(const CurlTransfer& transfer) override;

  CURL* easy() { return easy_.get(); }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    curl_easy_setopt(easy_.get(), option, value);
  }
  void set_request(const CurlTransfer& transfer, curl_slist* headers);
  CurlOutcome drive(Progress& progress);
  std::string why(CURLcode code) const;
  void leave() {
    if (!std::exchange(in_multi_, false)) return;
    const SigpipeGuard guard;
    curl_multi_remove_handle(multi_.get(), easy_.get());
  }

  std::unique_ptr<CURLM, FreeMulti> multi_;
  std::unique_ptr<CURL, FreeEasy> easy_;
  std::array<char, CURL_ERROR_SIZE> error_{};
  bool in_multi_ = false;
};

void Session::reset() {
  curl_easy_reset(easy_.get());
  set(CURLOPT_ERRORBUFFER, error_.data());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, 30L);
  set(CURLOPT_TCP_KEEPINTVL, 15L);
  set(CURLOPT_QUICK_EXIT, 1L);  // a stopped call does not wait for the resolver
  set(CURLOPT_HEADERFUNCTION, on_header);
  set(CURLOPT_WRITEFUNCTION, on_body);
}

void Session::set_request(const CurlTransfer& transfer, curl_slist* headers) {
  set(CURLOPT_HTTPHEADER, headers);
  set(CURLOPT_CUSTOMREQUEST, transfer.method.c_str());
  const bool has_body = !transfer.body.empty() || transfer.method == "POST" ||
                        transfer.method == "PUT" || transfer.method == "PATCH";
  if (transfer.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (has_body) {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDS, transfer.body.data() == nullptr ? "" : transfer.body.data());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(transfer.body.size()));
  } else {
    set(CURLOPT_HTTPGET, 1L);
  }
}

CurlOutcome Session::run(const CurlTransfer& transfer) {
  const SigpipeGuard guard;
  const auto headers = header_list(transfer);
  Progress progress{transfer, easy_.get()};
  error_[0] = '\0';
  set(CURLOPT_HEADERDATA, &progress);
  set(CURLOPT_WRITEDATA, &progress);
  if (transfer.connect_only) {
    set(CURLOPT_CONNECT_ONLY, 1L);
    set(CURLOPT_FRESH_CONNECT, 1L);
  } else {
    set_request(transfer, headers.get());
  }
  curl_multi_add_handle(multi_.get(), easy_.get());
  in_multi_ = true;
  CurlOutcome outcome = drive(progress);
  // The connection of a connect-only transfer can be used while it stays inside.
  if (!transfer.connect_only || outcome.end != CurlOutcome::End::done) leave();
  outcome.status = progress.status;
  outcome.headers = std::move(progress.headers);
  return outcome;
}

CurlOutcome Session::drive(Progress& progress) {
  const std::stop_token& stop = progress.transfer.stop;
  const std::stop_callback wake(stop, [&] { curl_multi_wakeup(multi_.get()); });
  CurlOutcome outcome;
  while (true) {
    if (stop.stop_requested()) {
      outcome.end = CurlOutcome::End::stopped;
      return outcome;
    }
    int running = 0;
    curl_multi_perform(multi_.get(), &running);
    int left = 0;
    const CURLMsg* const message = curl_multi_info_read(multi_.get(), &left);
    if (message != nullptr && message->msg == CURLMSG_DONE) {
      const CURLcode code = message->data.result;
      outcome.end = code == CURLE_OK ? CurlOutcome::End::done : CurlOutcome::End::failed;
      if (code != CURLE_OK) outcome.why = why(code);
      return outcome;
    }
    if (const auto over = progress.overdue()) {
      outcome.end = *over;
      return outcome;
    }
    curl_multi_poll(multi_.get(), nullptr, 0, progress.poll_time(), nullptr);
  }
}

std::string Session::why(CURLcode code) const {
  long number = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_OS_ERRNO, &number);
  if (code == CURLE_COULDNT_CONNECT && number != 0) {
    return std::generic_category().message(static_cast<int>(number));
  }
  if (code == CURLE_OPERATION_TIMEDOUT) return "no connection in time";
  if (code == CURLE_GOT_NOTHING) return "it closed the connection without an answer";
  return error_[0] != '\0' ? error_.data() : curl_easy_strerror(code);
}

// libcurl's handles may not be used by two threads at once: each try holds the
// mutex, and no try blocks.
class CurlTransport final : public Transport {
 public:
  explicit CurlTransport(std::unique_ptr<Session> session) : session_(std::move(session)) {
    curl_socket_t socket = CURL_SOCKET_BAD;
    curl_easy_getinfo(session_->easy(), CURLINFO_ACTIVESOCKET, &socket);
    fd_ = socket;
  }

  IoTry read(std::span<char> into) override {
    const std::scoped_lock lock(mutex_);
    const SigpipeGuard guard;
    std::size_t got = 0;
    const CURLcode code = curl_easy_recv(session_->easy(), into.data(), into.size(), &got);
    if (code == CURLE_OK && got == 0) return {IoTry::Kind::end, 0, {}};
    return outcome(code, got, IoTry::Kind::wait_readable);
  }

  IoTry write(std::string_view bytes) override {
    const std::scoped_lock lock(mutex_);
    const SigpipeGuard guard;
    std::size_t sent = 0;
    const CURLcode code = curl_easy_send(session_->easy(), bytes.data(), bytes.size(), &sent);
    return outcome(code, sent, IoTry::Kind::wait_writable);
  }

  // libcurl has no way to end one direction of a TLS connection.
  void shutdown_write() override {}
  [[nodiscard]] int fd() const override { return fd_; }

 private:
  static IoTry outcome(CURLcode code, std::size_t size, IoTry::Kind wait) {
    if (code == CURLE_OK) return {IoTry::Kind::moved, size, {}};
    if (code == CURLE_AGAIN) return {wait, 0, {}};
    return {IoTry::Kind::broken, 0, curl_easy_strerror(code)};
  }

  std::mutex mutex_;
  std::unique_ptr<Session> session_;
  int fd_ = -1;
};

}  // namespace

Result<std::unique_ptr<CurlSession>> CurlSession::open() {
  CURL* const easy = curl_easy_init();
  CURLM* const multi = curl_multi_init();
  auto session = std::make_unique<Session>(easy, multi);
  if (easy == nullptr || multi == nullptr) {
    return Error{ErrorCode::internal, "libcurl could not be set up"};
  }
  session->reset();
  return std::unique_ptr<CurlSession>(std::move(session));
}

std::unique_ptr<Transport> make_curl_transport(std::unique_ptr<CurlSession> session) {
  auto* const own = static_cast<Session*>(session.release());
  return std::make_unique<CurlTransport>(std::unique_ptr<Session>(own));
}

Result<std::unique_ptr<CurlSession>> CurlSessionPool::take() {
  {
    const std::scoped_lock lock(mutex_);
    if (!idle_.empty()) {
      auto session = std::move(idle_.back());
      idle_.pop_back();
      session->reset();
      return session;
    }
  }
  return CurlSession::open();
}

void CurlSessionPool::give_back(std::unique_ptr<CurlSession> session) {
  const std::scoped_lock lock(mutex_);
  if (idle_.size() < most_idle_sessions) idle_.push_back(std::move(session));
}

}  // namespace fuse
