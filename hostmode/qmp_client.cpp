#include "hostmode/qmp_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_reader.h"
#include "base/text.h"
#include "hostmode/unix_socket.h"
#include "hostmode/vm_paths.h"

namespace fuse {

using nlohmann::ordered_json;

namespace {

Error silent(std::chrono::milliseconds limit) {
  return {ErrorCode::unreachable, cat("QEMU's monitor did not answer within ", limit.count(),
                                      " ms: it hangs, or another process holds the monitor")};
}

}  // namespace

Result<QmpClient> QmpClient::connect(const fs::path& vm_dir, const Limits& limits) {
  auto connection = connect_unix(vm_dir, vm_file::qmp_socket);
  if (!connection) return connection.error();
  return over(std::move(connection).value(), limits);
}

Result<QmpClient> QmpClient::over(Fd connection, const Limits& limits) {
  QmpClient client(std::move(connection), limits);
  const auto greeting = client.receive(std::chrono::steady_clock::now() + limits.greeting);
  if (!greeting) return greeting.error();
  if (greeting->kind != QmpMessage::Kind::greeting) {
    return Error{ErrorCode::internal, "QEMU's monitor did not begin with its greeting"};
  }
  if (auto ready = client.execute("qmp_capabilities"); !ready) return ready.error();
  return client;
}

Result<std::string> QmpClient::execute(std::string_view command) {
  return execute(command, ordered_json::object());
}

Result<std::string> QmpClient::execute(std::string_view command, const ordered_json& arguments) {
  const std::int64_t id = ++last_id_;
  if (auto sent = send(qmp_command(command, arguments, id)); !sent) return sent.error();
  const auto deadline = std::chrono::steady_clock::now() + limits_.answer;
  while (true) {
    auto message = receive(deadline);
    if (!message) return in_context(command, message.error());
    // Events come in between; an error without id answers an unreadable line.
    if (message->kind == QmpMessage::Kind::result && message->id == id) return message->value;
    if (message->kind == QmpMessage::Kind::failure && (message->id == id || message->id == 0)) {
      return Error{ErrorCode::internal, cat(command, ": ", message->description)};
    }
  }
}

Result<std::string> QmpClient::human(const std::string& line) {
  const auto answer = execute("human-monitor-command", {{"command-line", line}});
  if (!answer) return answer.error();
  const auto value = parse_json(*answer);
  if (!value || !value->is_string()) {
    return Error{ErrorCode::internal, cat("QEMU's answer to \"", line, "\" is not text")};
  }
  return value->get<std::string>();
}

Result<QmpMessage> QmpClient::receive(std::chrono::steady_clock::time_point deadline) {
  while (true) {
    auto line = lines_.next();
    if (!line) return line.error();
    if (*line) return parse_qmp_message(**line);

    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return silent(limits_.greeting);
    pollfd event{.fd = connection_.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&event, 1, static_cast<int>(left.count()) + 1);
    if (ready < 0 && errno != EINTR) return errno_error("wait for QEMU's monitor", errno);
    if (ready <= 0) continue;
    std::array<char, 16384> buffer{};
    const ssize_t got = ::recv(connection_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got == 0) return Error{ErrorCode::unreachable, "QEMU closed its monitor"};
    if (got > 0) {
      lines_.feed({buffer.data(), static_cast<std::size_t>(got)});
    } else if (errno == ECONNRESET) {
      return Error{ErrorCode::unreachable, "QEMU closed its monitor"};
    } else if (errno != EINTR && errno != EAGAIN) {
      return errno_error("read from QEMU's monitor", errno);
    }
  }
}

Result<void> QmpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return Error{ErrorCode::unreachable, "QEMU closed its monitor"};
    } else if (errno != EINTR) {
      return errno_error("write to QEMU's monitor", errno);
    }
  }
  return {};
}

namespace {

// One text field of the answer to a command without arguments.
Result<std::string> query_text(QmpClient& qmp, std::string_view command, std::string_view field) {
  const auto answer = qmp.execute(command);
  if (!answer) return answer.error();
  const auto value = parse_json(*answer);
  if (!value) return value.error();
  JsonReader fields(*value, "");
  auto text = fields.text(field);
  if (!text) return Error{ErrorCode::internal, cat("QEMU did not say its ", field)};
  return *std::move(text);
}

}  // namespace

Result<std::string> query_uuid(QmpClient& qmp) {
  const auto uuid = query_text(qmp, "query-uuid", "UUID");
  if (!uuid) return uuid.error();
  return lowercase(*uuid);
}

Result<std::string> query_status(QmpClient& qmp) {
  return query_text(qmp, "query-status", "status");
}

}  // namespace fuse
