#!/usr/bin/env bash
# Finds what no file of the tree should hold.  The patterns are written so that
# they do not match themselves.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

found=0
# never REASON PATTERN [PATHSPEC...]
never() {
  local reason=$1 pattern=$2
  shift 2
  if git grep -nIiE --untracked -e "$pattern" -- "$@"; then
    echo "^ $reason"
    found=1
  fi
}

never 'a package mirror: take it from the machine'"'"'s own configuration' \
  '(deb|ftp|security|snapshot|archive|ports)\.(debi[a]n|ubunt[u])\.(org|com|net)'
never 'a package registry' \
  '(pyp[i]|npmj[s]|crate[s]|rubygem[s])\.(org|com|io)|files\.pythonhoste[d]|proxy\.golan[g]'
never 'a path of one machine' '(^|[^a-z0-9_])/wor[k]/(main|shared)|/roo[t]/\.'
never 'work that is not done' '(^|[^a-z_])(TOD[O]|FIXM[E]|XX[X])([^a-z_]|$)' \
  '*.cpp' '*.h' '*.c' '*.cmake' '*CMakeLists.txt' '*.sh' '*.py' 'scripts' 'Makefile'
never 'a conflict that was not resolved' '^(<<<<<<[<]|>>>>>>[>]) '
never 'who wrote it is in the history' 'generated (by|with) a[n]? ?(ai|llm|assistan[t])|(claud[e]|chatgp[t]|copilo[t])'
exit "$found"
