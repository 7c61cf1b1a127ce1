#!/bin/bash
# Runs a command as root: as it is where we are root, else with sudo. PATH and the variables of the
# tests and the demo survive sudo.
set -euo pipefail
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
if [ "$(id -u)" = 0 ]; then
	exec "$@"
fi
if ! command -v sudo >/dev/null; then
	echo "this needs root, and there is no sudo: run it as root: su -c 'make ...'" >&2
	exit 6
fi
if ! sudo -n true 2>/dev/null; then
	[ -t 0 ] || [ -r /dev/tty ] || {
		echo "this needs root, and sudo asks for a password without a terminal to ask on: run sudo -v first" >&2
		exit 6
	}
	echo "this needs root: sudo may ask for your password: $1" >&2
fi
keep=("PATH=$PATH")
for name in SCAFFOLD_ROOT_TESTS SCAFFOLD_LONG_TESTS SCAFFOLD_PLANE SCAFFOLD_SEED GOCACHE GOMODCACHE GOFLAGS GOPROXY GOTOOLCHAIN CI SCAFFOLD_RUN; do
	[ -z "${!name:-}" ] || keep+=("$name=${!name}")
done
exec sudo env "${keep[@]}" "$@"
