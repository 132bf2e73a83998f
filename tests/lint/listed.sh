#!/usr/bin/env bash
# Finds sources that no CMakeLists.txt names.  A test that is left out of the
# build does not exist.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# The tree's files that match a pattern, also those that are not committed yet.
tree() {
  git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do
    [ ! -f "$file" ] || printf '%s\n' "$file"
  done
}

named=$(tree '*CMakeLists.txt' | while read -r list; do
  sed 's/#.*//' "$list" | tr ' ()\t' '\n' | grep '\.cpp$' |
    sed "s|^|$(dirname "$list")/|" || true
done | xargs realpath --canonicalize-missing --relative-to=. | sort -u)
missing=$(comm -23 <(tree '*.cpp' | sort -u) <(printf '%s\n' "$named"))
[ -z "$missing" ] || {
  printf '%s\n' "$missing" '^ in no CMakeLists.txt'
  exit 1
}
