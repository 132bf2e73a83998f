#!/usr/bin/env bash
# Plants one violation of each kind and one look-alike that is fine, and sees
# that layers.sh tells them apart.
set -euo pipefail
layers=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/layers.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
wrong=0

# plant FILE INCLUDE: a tree that holds this one line.
plant() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/base" "$tree/$(dirname "$1")"
  : >"$tree/base/text.h"
  printf '#include %s\n' "$2" >"$tree/$1"
}

refused() {
  plant "$1" "$2"
  if "$layers" "$tree" >/dev/null; then
    echo "not found: $1 includes $2"
    wrong=1
  fi
}

accepted() {
  plant "$1" "$2"
  if ! "$layers" "$tree"; then
    echo "found, but fine: $1 includes $2"
    wrong=1
  fi
}

# Upwards and sideways.
refused base/log.cpp '"net/http.h"'
refused base/log.cpp '"orchestrator/api/types.h"'
refused orchestrator/api/types.h '"orchestrator/store.h"'
refused orchestrator/api/types.h '"net/http.h"'
refused net/sse.cpp '"remote/client.h"'
refused fusefile/parse.cpp '"net/http.h"'
refused fusefile/parse.cpp '"orchestrator/scheduler.h"'
refused remote/client.cpp '"orchestrator/store.h"'
refused remote/client.cpp '"fusefile/parse.h"'
refused orchestrator/service.cpp '"hostmode/agent.h"'
refused orchestrator/service.cpp '"guest/channel/frame.h"'
refused hostmode/agent.cpp '"orchestrator/store.h"'
refused hostmode/agent.cpp '"guest/init.h"'
refused hostmode/devices/bind.cpp '"hostmode/agent.h"'
refused hostmode/devices/bind.cpp '"hostmode/mig/profile.h"'
refused hostmode/mig/mig_apply.cpp '"hostmode/agent.h"'
refused guest/init.cpp '"hostmode/agent.h"'
refused guest/init.cpp '"net/http.h"'
refused guest/channel/frame.h '"guest/init.h"'
refused cmd/up.cpp '"tests/fakes/fake_host.h"'
refused main.cpp '"fusefile/parse.h"'
# Names.
refused base/log.cpp '"text.h"'
refused base/log.cpp '"../base/text.h"'
refused base/log.cpp '<base/text.h>'
refused base/log.cpp ' "net/http.h" // with room around it'
refused orchestrator/service.cpp '"orchestrator/api/json_detail.h"'
refused base/text.cpp '<string>'
# Libraries past their wrapper.
refused cmd/up.cpp '<yaml-cpp/yaml.h>'
refused fusefile/parse.cpp '<CLI/CLI.hpp>'
refused orchestrator/service.cpp '<sqlite3.h>'
refused orchestrator/sqlite.h '<sqlite3.h>'
refused orchestrator/service.cpp '<libpq-fe.h>'
refused orchestrator/http.cpp '<httplib.h>'
refused net/http_server.h '"httplib.h"'
refused net/http_server.cpp '<httplib.h>'
refused remote/client.cpp '<curl/curl.h>'
refused hostmode/agent.cpp '<openssl/sha.h>'
refused base/json_reader.h '<nlohmann/json.hpp>'
refused base/log.cpp '<catch2/catch_all.hpp>'

accepted base/log.cpp '"base/text.h"'
accepted base/text.cpp '"base/text.h"'
accepted base/log.cpp '<net/if.h>'
accepted orchestrator/api/types.h '"base/text.h"'
accepted orchestrator/service.cpp '"orchestrator/api/types.h"'
accepted orchestrator/service.cpp '"net/http.h"'
accepted hostmode/vm.cpp '"guest/channel/frame.h"'
accepted guest/init.cpp '"guest/channel/frame.h"'
accepted cmd/serve.cpp '"hostmode/agent.h"'
accepted main.cpp '"cmd/commands.h"'
accepted fusefile/map_reader.h '<yaml-cpp/yaml.h>'
accepted cmd/up.cpp '<CLI/CLI.hpp>'
accepted orchestrator/sqlite_statement.cpp '<sqlite3.h>'
accepted net/httplib_stream_detail.h '<httplib.h>'
accepted net/http_client.cpp '<curl/curl.h>'
accepted base/crypto.cpp '<openssl/evp.h>'
accepted base/json_reader.h '<nlohmann/json_fwd.hpp>'
accepted orchestrator/api/json_detail.h '<nlohmann/json.hpp>'
accepted orchestrator/api/json.cpp '"orchestrator/api/json_detail.h"'
accepted base/json_reader.cpp '<nlohmann/json.hpp>'

exit "$wrong"
