#!/bin/bash
# Fails where a file is not laid out as gofmt does, or a script is not clean to shellcheck (where
# that is installed).
set -euo pipefail
cd "$(dirname "$0")/.."
go=$(scripts/go.sh --path)
gofmt=$(dirname "$go")/gofmt
[ -x "$gofmt" ] || gofmt=$("$go" env GOROOT)/bin/gofmt
bad=$("$gofmt" -l .)
if [ -n "$bad" ]; then
	printf 'not laid out as gofmt does; run gofmt -w on:\n%s\n' "$bad" >&2
	exit 1
fi
if command -v shellcheck >/dev/null; then
	shellcheck scripts/*.sh .ci/run
fi
