#include <cstdlib>

#include "guest/agent.h"

// guest_agent_process ROOT [SOCKET [BYTES]]: serves at SOCKET, or the connection
// that is its stdin; BYTES limits what the job's log may take.
int main(int argc, char** argv) {
  if (argc < 2) return 2;
  fuse::AgentOptions options;
  options.root = argv[1];
  options.port = argc > 2 ? fuse::PortPlace{.listen = argv[2]} : fuse::PortPlace{.fd = 0};
  if (argc > 3) options.most_log_bytes = std::strtoull(argv[3], nullptr, 10);
  return fuse::run_guest_agent(options);
}
