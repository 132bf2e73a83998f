#!/usr/bin/env bash
# Runs shellcheck on every script of the tree, by its first line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

mapfile -t scripts < <(git ls-files --cached --others --exclude-standard |
  while read -r file; do
    [ -f "$file" ] || continue
    IFS= read -r first <"$file" || true
    case $first in
      '#!'*/sh | '#!'*/bash | '#!'*'env sh' | '#!'*'env bash') printf '%s\n' "$file" ;;
    esac
  done 2>/dev/null)
shellcheck "${scripts[@]}"
