#!/bin/bash
# Runs the tests (internal/tests/runner): `scripts/test.sh check` those that need no root, `all` every promise once, `long`
# each promise on each data plane, `steady -test NAME` one test many times. Builds always run as the caller; the tests that
# need root run by sudo where we are not root.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${HOME:=$(getent passwd "$(id -u)" | cut -d: -f6)}" # Go's caches live there
export HOME
# The runner, gotestsum and tests call go themselves: it is to be the one that builds this tree, as scripts/go.sh finds it.
GOTOOLCHAIN=$(scripts/go.sh env GOTOOLCHAIN)
GOMODCACHE=$(scripts/go.sh env GOMODCACHE)
PATH=$(scripts/go.sh env GOROOT)/bin:$PATH:/usr/local/sbin:/usr/sbin:/sbin
GOFLAGS="${GOFLAGS:+$GOFLAGS }-trimpath"
export GOTOOLCHAIN GOMODCACHE PATH GOFLAGS
case ${1:-} in
all | long | steady) [ "$(id -u)" = 0 ] || scripts/as-root.sh true ;; # the password now, not in the middle
esac
mkdir -p bin
CGO_ENABLED=0 go build -buildvcs=false -o bin/runner ./internal/tests/runner
exec bin/runner "$@"
