#!/usr/bin/env bash
# Compiles every header by itself.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cmake --preset dev >build/headers.log
cmake --build --preset dev --target fuse_headers
