#!/usr/bin/env bash
# Finds includes that cross a layer or take a library past its wrapper, and
# sources that do not begin with their own header.
#
#   tests/lint/layers.sh [ROOT]
#
# main.cpp -> cmd -> fusefile, remote, orchestrator, hostmode, guest -> net
#   -> orchestrator/api -> base
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"

# The room a file or an included header belongs to.  Some folders are rooms of
# their own inside another: the wire's types, the guest's channel, which the host
# speaks too, and the host's devices and their instances, which know of no VM.
room_of() {
  case $1 in
    orchestrator/api/*) room=api ;;
    guest/channel/* | guest/channel.* | guest/channel_*) room=channel ;;
    hostmode/devices/*) room=devices ;;
    hostmode/mig/*) room=mig ;;
    */*) room=${1%%/*} ;;
    *) room=top ;;
  esac
}

# What each room may include besides itself and the standard library.
may_include() {
  case $1 in
    base) allowed='' ;;
    api) allowed='base' ;;
    net) allowed='base api' ;;
    channel) allowed='base api' ;;
    fusefile) allowed='base api' ;;
    guest) allowed='base api channel' ;;
    remote) allowed='base api net' ;;
    orchestrator) allowed='base api net' ;;
    devices) allowed='base api' ;;
    mig) allowed='base api devices' ;;
    hostmode) allowed='base api net channel devices mig' ;;
    cmd) allowed='base api net channel fusefile remote orchestrator devices mig hostmode guest' ;;
    top) allowed='base cmd' ;;
    *) allowed='' ;;
  esac
}

# The files that may include a header of a library, as patterns, or * where it
# is free.  An empty answer: not a library that is wrapped.
wrappers_of() {
  case $1 in
    yaml-cpp/*) wrappers='fusefile/*' ;;
    CLI/*) wrappers='cmd/*' ;;
    sqlite3.h | sqlite3ext.h) wrappers='orchestrator/sqlite*.cpp' ;;
    libpq-fe.h | libpq/*) wrappers='orchestrator/postgres*.cpp' ;;
    httplib.h) wrappers='net/httplib*_detail.h' ;;
    curl/*) wrappers='net/http_client.cpp net/curl*.cpp' ;;
    openssl/*) wrappers='base/certificate.cpp base/crypto.cpp net/*.cpp' ;;
    nlohmann/json_fwd.hpp) wrappers='*' ;;
    nlohmann/*) wrappers='*.cpp *_detail.h' ;;
    catch2/*) wrappers='none' ;;
    *) wrappers='' ;;
  esac
}

complaints=0
complain() {
  printf '%s\n' "$1"
  complaints=$((complaints + 1))
}

check_own() {
  local file=$1 line=$2 header=$3
  room_of "$header"
  if [ "$room" = top ]; then
    complain "$file:$line: \"$header\" must be named from the top, as in \"base/text.h\""
    return
  fi
  local target=$room
  room_of "$file"
  may_include "$room"
  case " $room $allowed " in
    *" $target "*) ;;
    *) complain "$file:$line: $room may not include \"$header\"" ;;
  esac
  # Such a header may include what others may not, so it stays in its folder.
  if [[ $header == *_detail.h && ${header%/*} != "${file%/*}" ]]; then
    complain "$file:$line: \"$header\" is for its own folder alone"
  fi
}

check_library() {
  local file=$1 line=$2 header=$3 pattern
  wrappers_of "$header"
  [ -n "$wrappers" ] || return 0
  set -f
  for pattern in $wrappers; do
    # shellcheck disable=SC2254  # a pattern is meant
    case $file in $pattern) set +f; return 0 ;; esac
  done
  set +f
  complain "$file:$line: <$header> may only be included by $wrappers"
}

places=()
for place in base orchestrator net fusefile remote hostmode guest cmd main.cpp; do
  [ ! -e "$place" ] || places+=("$place")
done
if [ ${#places[@]} -eq 0 ]; then
  echo "no sources in $PWD"
  exit 2
fi

previous=
while IFS=: read -r file line text; do
  [[ $text =~ ^[[:space:]]*#[[:space:]]*include[[:space:]]*([\<\"])([^\>\"]+)[\>\"] ]] || continue
  header=${BASH_REMATCH[2]}
  if [ "${BASH_REMATCH[1]}" = '"' ]; then
    # A library in quotes is still that library.
    wrappers_of "$header"
    if [ -n "$wrappers" ]; then
      check_library "$file" "$line" "$header"
    else
      check_own "$file" "$line" "$header"
    fi
  else
    room_of "$header"
    case $room in
      base | api | net | channel | fusefile | remote | orchestrator | devices | mig | hostmode | \
        guest | cmd)
        # <net/if.h> is the system's.
        [ -e "$header" ] && complain "$file:$line: <$header> is ours: write it in quotes"
        ;;
    esac
    check_library "$file" "$line" "$header"
  fi
  # So each header is compiled by itself at least once.
  if [ "$file" != "$previous" ]; then
    previous=$file
    own=${file%.cpp}.h
    if [ "$own" != "$file" ] && [ -e "$own" ] && [ "$header" != "$own" ]; then
      complain "$file:$line: \"$own\" must be the first include"
    fi
  fi
done < <(grep -rnE --include='*.h' --include='*.cpp' --include='*.c' --with-filename \
  '^[[:space:]]*#[[:space:]]*include' "${places[@]}" || true)

[ "$complaints" -eq 0 ]
