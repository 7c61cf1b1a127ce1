#!/bin/bash
# Runs the tests: `scripts/test.sh check` those that need no root, `scripts/test.sh all` every one,
# the ones that need root by sudo where we are not root. Builds always run as the caller.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# Tests of controllers and stores wait for disks and clocks: more of them go on at a time than there are processors.
SIDE_BY_SIDE=8

# What has goroutines of its own and is quick enough to run again under the race detector.
RACE='/(sid|wire|emu|emu/pcap)$|/internal/(agent|api|capture|cli|controld|core/[a-z]+|emud|gateway|hostd|obs|ofconn|routerd|store|switchd|trust|underlay)$'

run() {
	local in=()
	if [ "$1" = -C ]; then
		in=("$1" "$2")
		shift 2
	fi
	CGO_ENABLED=${cgo:-0} scripts/go.sh test "${in[@]}" -v -count=1 -parallel "$SIDE_BY_SIDE" "$@" 2>&1 | awk -f scripts/count.awk
}

# What is written against the public packages alone, in a Go module of its own: it fails when they change under it.
outside() {
	for dir in examples/module examples/router; do
		echo "== $dir, as an outside module"
		CGO_ENABLED=0 scripts/go.sh -C "$dir" vet ./...
		CGO_ENABLED=0 scripts/go.sh -C "$dir" build -o /dev/null .
		run -C "$dir" ./...
	done
}

races() {
	if ! command -v gcc >/dev/null; then
		echo "race detector: left out, it needs gcc"
		return
	fi
	local packages
	mapfile -t packages < <(scripts/go.sh list ./... | grep -E "$RACE")
	echo "== with the race detector"
	cgo=1 run -race "$@" "${packages[@]}"
}

case ${1:-} in
check)
	export SCAFFOLD_ROOT_TESTS=0
	echo "== tests that need no root"
	run -timeout 5m ./...
	outside
	races -timeout 5m
	;;
all)
	export SCAFFOLD_ROOT_TESTS=1
	as_root=()
	if [ "$(id -u)" != 0 ]; then
		scripts/as-root.sh true
		# Tests that call Go themselves must not leave root's files in the caller's caches.
		as_root=(-exec "'$PWD/scripts/as-root.sh' env GOFLAGS=-mod=readonly GOCACHE=/tmp/scaffold-root-cache")
		GOMODCACHE=$(scripts/go.sh env GOMODCACHE)
		export GOMODCACHE
		trap 'scripts/as-root.sh rm -rf /tmp/scaffold-root-cache' EXIT
	fi
	echo "== all tests"
	run -timeout 20m "${as_root[@]}" ./...
	echo "== on OpenFlow switches: promises end to end, and unmodified programs"
	# The attackers of five tests sit beside a Linux router, upgrades and
	# tunnels of hosts are of Linux routers' daemons: they run once, above.
	SCAFFOLD_PLANE=openflow run -timeout 10m -skip '^Test(Attackers|AFloodOfRSYNs|KeysChange|TheLastInstance|Upgrade|.*Tunnel|HostsOnIPv4|ANATThat)' "${as_root[@]}" ./internal/e2e ./internal/programs
	echo "== on routers inside the engine: promises end to end"
	SCAFFOLD_PLANE=emulated run -timeout 15m -skip '^Test(AttackersBesideAnOpenNetwork|Upgrade|.*Tunnel|HostsOnIPv4|ANATThat)' "${as_root[@]}" ./internal/e2e
	outside
	SCAFFOLD_ROOT_TESTS=0 races -timeout 10m
	;;
*)
	echo "usage: scripts/test.sh check|all" >&2
	exit 2
	;;
esac
