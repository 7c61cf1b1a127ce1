#!/bin/bash
# Builds bin/scaffold: one static binary. It needs Go alone; the BPF objects are committed.
set -euo pipefail
cd "$(dirname "$0")/.."
# git refuses a tree of another user (make demo by sudo) unless told; a tarball has no git at all.
version=$(GIT_OPTIONAL_LOCKS=0 git -c safe.directory='*' describe --tags --always --dirty 2>/dev/null || echo unknown)
revision=$(GIT_OPTIONAL_LOCKS=0 git -c safe.directory='*' rev-parse HEAD 2>/dev/null || echo unknown)
CGO_ENABLED=0 scripts/go.sh build -buildvcs=false -trimpath \
	-ldflags "-X scaffold.dev/scaffold/internal/obs.version=$version -X scaffold.dev/scaffold/internal/obs.revision=$revision" -o bin/scaffold ./cmd/scaffold
# Built by root in somebody's tree: the next build may be theirs.
[ "$(id -u)" != 0 ] || chown -R --reference=go.mod bin
