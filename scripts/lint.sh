#!/bin/sh
# Runs golangci-lint as .golangci.yaml has it on the program and on bench. The pinned version is built
# from the Go module proxy, once for all clones: it takes four minutes of two processors, a run takes one.
# `scripts/lint.sh build` only builds it, for who has something to wait for meanwhile.
set -eu
cd "$(dirname "$0")/.."
version=v2.15.0
dir=${XDG_CACHE_HOME:-$HOME/.cache}/scaffold/golangci-lint/$version
lint=$dir/golangci-lint
if [ ! -x "$lint" ]; then
	echo "builds golangci-lint $version: a few minutes, once" >&2
	# GOTOOLCHAIN is left as it is: the linter must be built by a Go that knows this tree's version.
	if ! GOBIN=$dir CGO_ENABLED=0 scripts/go.sh install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"; then
		echo "lint: golangci-lint $version could not be fetched or built" >&2
		echo "hint: go env GOPROXY says where modules come from; or put a golangci-lint of that version at $lint" >&2
		exit 1
	fi
fi
[ "${1:-}" != build ] || exit 0
# The linter starts go itself: it is to be the one that builds this tree.
PATH=$(scripts/go.sh env GOROOT)/bin:$PATH
GOTOOLCHAIN=$(scripts/go.sh env GOTOOLCHAIN)
GOFLAGS="${GOFLAGS:+$GOFLAGS }-trimpath"
export PATH GOFLAGS GOTOOLCHAIN CGO_ENABLED=0
for module in . bench; do
	(cd "$module" && "$lint" run --allow-serial-runners ./...) # waits for another one of this machine
done
