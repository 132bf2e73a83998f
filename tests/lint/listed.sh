#!/usr/bin/env bash
# Finds test files that no CMakeLists.txt names: a test that is left out of the
# build does not exist.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

missing=0
while IFS= read -r file; do
  [ -f "$file" ] || continue
  # The list is in the file's own folder or in one above it.
  folder=$(dirname "$file") found=no
  while [ "$found" = no ]; do
    list=$folder/CMakeLists.txt
    name=${file#"$folder"/}
    if [ -f "$list" ] && sed 's/#.*//' "$list" | tr ' ()\t' '\n' | grep -qxF -- "$name"; then
      found=yes
    fi
    [ "$folder" != tests ] || break
    folder=$(dirname "$folder")
  done
  if [ "$found" = no ]; then
    echo "$file is in no CMakeLists.txt"
    missing=1
  fi
done < <(git ls-files --cached --others --exclude-standard -- 'tests/*_test.cpp' 'tests/*_fuzz.cpp')
exit "$missing"
