#include "net/upgrade_call.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/text.h"
#include "net/httplib_stream_detail.h"

namespace fuse {

namespace {

using std::chrono::steady_clock;

constexpr std::size_t most_head = 64U << 10U;

// httplib's client without a connection of its own.
class UpgradeClient final : private httplib::ClientImpl {
 public:
  UpgradeClient() : ClientImpl("localhost") { set_url_encode(false); }

  // Whether a whole head came.
  bool ask(HttplibStream& wire, httplib::Request& request, httplib::Response& response) {
    bool has_head = false;
    request.response_handler = [&](const httplib::Response& got) {
      has_head = true;
      return got.status != 101;
    };
    // Half an explanation is better than none, so what its body came to is no matter.
    httplib::Error ignored{};
    return process_request(wire, request, response, false, ignored) || has_head;
  }
};

Error why_none(HttplibStream::Input last_read, const UpgradeCall& call) {
  const auto unreachable = [](std::string why) {
    return Error{ErrorCode::unreachable, std::move(why)};
  };
  switch (last_read) {
    case HttplibStream::Input::end:
    case HttplibStream::Input::broken:
      return unreachable("it closed the connection");
    case HttplibStream::Input::timed_out:
      return unreachable(cat("no answer within ", call.timeout.count(), " ms"));
    case HttplibStream::Input::ready:
    case HttplibStream::Input::too_large:
      break;
  }
  return unreachable("its answer is not HTTP");
}

}  // namespace

Result<HttpReply> ask_for_upgrade(SocketStream& connection, const UpgradeCall& call) {
  HttplibStream wire(connection, call.timeout);
  wire.set_deadline(steady_clock::now() + call.timeout);
  wire.expect_head(most_head);
  HttpReply reply;
  httplib::Request request;
  request.method = call.method;
  request.path = call.target;
  for (const auto& [name, value] : call.headers.fields()) request.set_header(name, value);
  request.content_receiver = [&](const char* bytes, std::size_t size, std::uint64_t,
                                 std::uint64_t) {
    const std::size_t room = call.most_body - reply.body.size();
    reply.body.append(bytes, std::min(size, room));
    return size < room;
  };
  httplib::Response response;
  if (!UpgradeClient().ask(wire, request, response)) return why_none(wire.last_read(), call);
  reply.status = response.status;
  reply.headers = fields_of(response.headers);
  return reply;
}

}  // namespace fuse
