#!/bin/sh
# Runs the Go toolchain wherever it is: `scripts/go.sh build ./...`. sudo's PATH and cron's do not
# look where Go usually lives. `scripts/go.sh --path` prints which one it would run. Where there is
# none, or only one that is too old, it prints the commands that install it and fails.
set -eu
cd "$(dirname "$0")/.."
need=$(awk '$1 == "go" { print $2; exit }' go.mod)

home_of() { getent passwd "$1" | cut -d: -f6; }

existing() {
	for file in "$@"; do
		[ ! -x "$file" ] || echo "$file"
	done
}

# candidates prints paths, the likely ones first; newest first where there are several versions.
candidates() {
	command -v go || true
	existing /usr/local/go/bin/go /snap/bin/go
	existing /usr/lib/go-*/bin/go | sort -rV
	candidates_in "$HOME"
	[ -z "${SUDO_USER:-}" ] || candidates_in "$(home_of "$SUDO_USER")"
}

candidates_in() {
	existing "$1"/go/bin/go "$1"/.local/go/bin/go "$1"/.go/bin/go
	existing "$1"/sdk/go*/bin/go "$1"/.goenv/versions/*/bin/go "$1"/.gvm/gos/*/bin/go \
		"$1"/.asdf/installs/golang/*/go/bin/go "$1"/.local/share/mise/installs/go/*/bin/go | sort -rV
	existing "$1"/.goenv/shims/go "$1"/.asdf/shims/go "$1"/.local/share/mise/shims/go
}

# version prints what `go version` says in this module, as in 1.26.8. With GOTOOLCHAIN=auto, Go 1.21
# and later fetch the version that go.mod asks for; with local it is the one installed.
version() { GOTOOLCHAIN=$2 "$1" version 2>/dev/null | sed -n 's/^go version [^0-9]*\([0-9][0-9.]*\).*/\1/p'; }

enough() { [ -n "$1" ] && [ "$(printf '%s\n%s\n' "$need" "$1" | sort -V | head -n 1)" = "$need" ]; }

# pick prints the first candidate that is new enough with the given GOTOOLCHAIN.
pick() {
	candidates | while read -r go; do
		if enough "$(version "$go" "$1")"; then
			echo "$go"
			break
		fi
	done
}

complain() {
	case $(uname -m) in
	aarch64 | arm64) arch=arm64 ;;
	*) arch=amd64 ;;
	esac
	archive=go$need.linux-$arch.tar.gz
	found=$(candidates | while read -r go; do echo "  $go is $(version "$go" local)"; done | sort -u)
	{
		if [ -n "$found" ]; then
			echo "scaffold needs Go $need or later, and what was found is too old and cannot fetch it:"
			echo "$found"
		else
			echo "scaffold needs Go $need or later; there is none in PATH, /usr/local/go, /usr/lib/go-* or the home directory."
		fi
		echo "These commands install it:"
		command -v curl >/dev/null 2>&1 || echo "  sudo apt-get install -y curl ca-certificates"
		echo "  curl -fLO https://go.dev/dl/$archive"
		echo "  sudo rm -rf /usr/local/go && sudo tar -C /usr/local -xzf $archive"
		echo "  rm $archive"
		echo "Or name one that is elsewhere: make GO=/path/to/go"
	} >&2
	exit 1
}

: "${HOME:=$(home_of "$(id -u)")}" # Go's caches live there
export HOME
if [ -n "${GO:-}" ]; then
	go=$(command -v "$GO") || { echo "GO=$GO: there is no such program" >&2 && exit 1; }
else
	go=$(pick local)
	if [ -z "$go" ]; then
		go=$(pick auto)
		export GOTOOLCHAIN=auto # some distributions set local
	fi
fi
[ -n "$go" ] || complain
if [ "${1:-}" = --path ]; then
	echo "$go"
	exit
fi
# gofmt and what Go itself starts should be those of the same toolchain.
PATH=$(dirname "$go"):$PATH
# bin/scaffold, vet, tests and the daemons of a former commit that a test builds are compiled alike, wherever their
# trees are: what one of them has compiled the others find in the cache.
GOFLAGS="${GOFLAGS:+$GOFLAGS }-trimpath"
export PATH GOFLAGS
exec "$go" "$@"
