#!/bin/bash
# Builds bin/scaffold, one static binary, and bin/scaffold-bench, the benchmarks, which `scaffold bench` finds beside it.
# It needs Go alone; the BPF objects are committed.
set -euo pipefail
cd "$(dirname "$0")/.."
# git refuses a tree of another user (make demo by sudo) unless told; a tarball has no git at all.
version=$(GIT_OPTIONAL_LOCKS=0 git -c safe.directory='*' describe --tags --always --dirty 2>/dev/null || echo unknown)
revision=$(GIT_OPTIONAL_LOCKS=0 git -c safe.directory='*' rev-parse HEAD 2>/dev/null || echo unknown)
# Without tables for a debugger, as in the package (scripts/deb.sh): the first is 63 MB with them left out, 87 with them.
# What a panic says, and profiles, have no need of them.
flags=(-buildvcs=false -trimpath -ldflags "-s -w -X scaffold.dev/scaffold/internal/operate/obs.version=$version -X scaffold.dev/scaffold/internal/operate/obs.revision=$revision")
export CGO_ENABLED=0
scripts/go.sh build "${flags[@]}" -o bin/scaffold ./cmd/scaffold
scripts/go.sh -C bench build "${flags[@]}" -o ../bin/scaffold-bench ./cmd/scaffold-bench
# Built by root in somebody's tree: the next build may be theirs.
[ "$(id -u)" != 0 ] || chown -R --reference=go.mod bin
