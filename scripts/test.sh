#!/bin/bash
# Runs the tests (internal/tests/runner): `scripts/test.sh check` those that need no root, `all` every promise once, `long`
# each promise on each data plane, `steady -test NAME` one test many times. Builds always run as the caller; the tests that
# need root run by sudo where we are not root.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
go=$(scripts/go.sh --path)
PATH=$(dirname "$go"):$PATH # of the toolchain that builds this tree, for the runner and for tests that call it
GOFLAGS="${GOFLAGS:+$GOFLAGS }-trimpath"
export PATH GOFLAGS
case ${1:-} in
all | long | steady) # the password now, not in the middle
	[ "$(id -u)" = 0 ] || scripts/as-root.sh true
	GOMODCACHE=$("$go" env GOMODCACHE)
	export GOMODCACHE
	;;
esac
mkdir -p bin
CGO_ENABLED=0 "$go" build -buildvcs=false -o bin/runner ./internal/tests/runner
exec bin/runner "$@"
