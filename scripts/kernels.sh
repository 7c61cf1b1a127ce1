#!/bin/bash
# Runs the kernel's tests on other kernels, as root: `scripts/kernels.sh [-only PACKAGE] [-run TEST] [SERIES...]`. The
# table in docs/kernels.md is written anew by `scripts/kernels.sh -record docs/kernels.md`.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$(mktemp)
trap 'rm -f "$binary"' EXIT
CGO_ENABLED=0 scripts/go.sh build -buildvcs=false -o "$binary" ./internal/tests/kernels
"$binary" "$@"
