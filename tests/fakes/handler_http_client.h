#pragma once

#include <memory>

#include "net/http.h"
#include "net/http_client.h"

namespace fuse {

// A client whose server is a handler in this process: no socket in between.
std::unique_ptr<HttpClient> make_handler_client(HttpHandler handler);

}  // namespace fuse
