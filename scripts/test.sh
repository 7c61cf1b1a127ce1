#!/bin/bash
# Runs the tests: `scripts/test.sh check` those that need no root, `scripts/test.sh all` every one, `scripts/test.sh
# long` what takes an hour: more rounds, and each promise on each data plane. The ones that need root run by sudo where
# we are not root. Builds always run as the caller.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# Tests of controllers and stores wait for disks and clocks: more of them go on at a time than there are processors, in
# each package, and of packages one more (internal/controller/store takes 5 s of processor in 49 s).
SIDE_BY_SIDE=8
AT_A_TIME=$(($(nproc) + 1))

# make vets all beforehand; tests need no tables for a debugger, which take half of a linker's time (1.6 of 3.2 s of
# processor for internal/tests/e2e).
QUICKLY=(-vet=off -ldflags=-w)

# What has goroutines of its own and is quick enough to run again under the race detector.
RACE='/(sid|wire|emu|emu/pcap)$|/internal/(api(/member)?|boost/(agent|door|trunk)|cli(/[a-z]+)?|trust|core/[a-z]+|controller/(controld(/[a-z]+)?|store)|host/[a-z]+|lab/(emud|processes|timeline)|openflow/(ofconn|switchd)|operate/obs|packet/capture|router/(agent|routerd))$'

run() {
	local in=()
	if [ "$1" = -C ]; then
		in=("$1" "$2")
		shift 2
	fi
	CGO_ENABLED=${cgo:-0} scripts/go.sh test "${in[@]}" "${QUICKLY[@]}" -v -count=1 -p "$AT_A_TIME" -parallel "$SIDE_BY_SIDE" "$@" 2>&1 | awk -f scripts/count.awk
}

# The functions below are called where a failure is noted and the next one follows: there the shell does not end by
# itself (set -e), also not in them.

# What is written against the public packages alone, in a Go module of its own: it fails when they change under it.
outside() {
	local failed=0
	for dir in examples/module examples/router; do
		echo "== $dir, as an outside module"
		CGO_ENABLED=0 scripts/go.sh -C "$dir" vet ./... || failed=1
		CGO_ENABLED=0 scripts/go.sh -C "$dir" build -o /dev/null . || failed=1
		run -C "$dir" ./... || failed=1
	done
	return $failed
}

# What hosts do by themselves, whatever carries their packets: it is proved on Linux routers, and on the other planes in
# a long run. A test that is not named here runs on all planes.
HOSTS_ALONE='|.*(Guest|Container|Gateway|Outsider|Permit|Listener|ReadyCheck|Refusals)|Run[A-Z]|ASecond|ABrokenConnection|StateOfBefore|ServicesOfOneHost|GSO|AReusedPort|MovesOfRealHosts'
# Programs that ask of a plane what others do not: fragments, answers from other ports, many connections, streams, moves.
PROGRAMS='^Test(Iperf3|TFTP|PowerDNS|MemcachedUDP|ApacheBench|ProgramsGoOn)'

# planes runs the promises end to end on the other data planes, both at a time: they wait more than they compute. The race
# detector waits for neither: beside them stores with ten thousand services gave up.
planes() {
	local switches emulated failed=0 said
	said=$(mktemp -d)
	# The attackers of five tests sit beside a Linux router, upgrades and
	# tunnels of hosts are of Linux routers' daemons: they run once, above. So do commands that outlive a leader: a host
	# behind switches hears of the next one once its switch has turned to that, which takes longer than a command waits.
	(
		bad=0
		SCAFFOLD_PLANE=openflow run -timeout "$timeout" -skip "^Test(Attackers|ALocalUserIsRefused|AFloodOfRSYNs|CommandsOutlive|ALeaderThatIsStopped|KeysChange|TheLastInstance|WhatWorksWhile|ConnectionsBegun|APortThatIsTold|OneMachineIs|ARoutersHost|Upgrade|.*Tunnel|HostsOnIPv4|ANATThat$HOSTS_ALONE)" "$@" ./internal/tests/e2e || bad=1
		SCAFFOLD_PLANE=openflow run -timeout "$timeout" -run "$PROGRAMS" "$@" ./internal/tests/programs || bad=1
		exit $bad
	) >"$said/switches" &
	switches=$!
	SCAFFOLD_PLANE=emulated run -timeout "$timeout" -skip "^Test(Attackers|ALocalUserIsRefused|AFloodOfRSYNs|ALeaderThatIsStopped|WhatWorksWhile|ConnectionsBegun|OneMachineIs|ARoutersHost|Upgrade|.*Tunnel|HostsOnIPv4|ANATThat$HOSTS_ALONE)" "$@" ./internal/tests/e2e >"$said/emulated" &
	emulated=$!
	wait $switches || failed=1
	echo "== on OpenFlow switches: promises end to end, and unmodified programs"
	cat "$said/switches"
	wait $emulated || failed=1
	echo "== on routers inside the engine: promises end to end"
	cat "$said/emulated"
	rm -r "$said"
	return $failed
}

races() {
	if ! command -v gcc >/dev/null; then
		echo "race detector: left out, it needs gcc"
		return
	fi
	local packages failed=0
	mapfile -t packages < <(scripts/go.sh list ./... | grep -E "$RACE")
	echo "== with the race detector"
	cgo=1 run -race "$@" "${packages[@]}" || failed=1
	cgo=1 run -C bench -race "$@" ./agent ./checked ./hosts || failed=1
	return $failed
}

failed=0 # what fails does not hide what comes after it: one run says all
case ${1:-} in
check)
	export SCAFFOLD_ROOT_TESTS=0
	echo "== tests that need no root"
	run -timeout 5m ./... || failed=1
	run -C bench -timeout 5m ./... || failed=1
	outside || failed=1
	races -timeout 5m || failed=1
	;;
all | long)
	export SCAFFOLD_ROOT_TESTS=1
	timeout=20m
	if [ "$1" = long ]; then
		export SCAFFOLD_LONG_TESTS=1
		timeout=2h HOSTS_ALONE= PROGRAMS=.
	fi
	as_root=()
	if [ "$(id -u)" != 0 ]; then
		scripts/as-root.sh true
		# Tests that call Go themselves must not leave root's files in the caller's caches.
		as_root=(-exec "'$PWD/scripts/as-root.sh' env GOFLAGS='-mod=readonly -trimpath' GOCACHE=/tmp/scaffold-root-cache")
		GOMODCACHE=$(scripts/go.sh env GOMODCACHE)
		export GOMODCACHE
		trap 'scripts/as-root.sh rm -rf /tmp/scaffold-root-cache' EXIT
	fi
	echo "== all tests"
	run -timeout "$timeout" "${as_root[@]}" ./... || failed=1
	run -C bench -timeout "$timeout" "${as_root[@]}" ./... || failed=1
	planes "${as_root[@]}" || failed=1
	outside || failed=1
	SCAFFOLD_ROOT_TESTS=0 races -timeout 15m || failed=1
	;;
*)
	echo "usage: scripts/test.sh check|all|long" >&2
	exit 2
	;;
esac
exit $failed
