#!/usr/bin/env bash
# Checks that clang-format would change nothing; --fix lets it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

mode=(--dry-run --Werror)
[ "${1:-}" != --fix ] || mode=(-i)
mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.h' '*.cpp' |
  while read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done)
[ ${#files[@]} -eq 0 ] || printf '%s\0' "${files[@]}" |
  xargs -0 -n 20 -P "$(nproc)" clang-format "${mode[@]}"
