#!/bin/bash
# Fails where a file is not laid out as gofmt does, and, where these are installed, where a script is not clean to
# shellcheck or Python is not laid out as black does.
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
if command -v black >/dev/null; then
	black --quiet --check --diff --config clients/python/pyproject.toml clients/python examples/python
fi
