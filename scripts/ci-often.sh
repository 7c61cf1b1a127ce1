#!/bin/bash
# Runs .ci/run many times, each in a fresh clone of one commit, the first of them beside a busy loop on each processor, and
# says how often it passed, what failed, and how long it took: scripts/ci-often.sh [--in DIR] RUNS [BESIDE-NOISE [COMMIT]].
# Noise comes first because it finds first what fails by chance: then the commit is another one, and all begins anew.
# What each run printed is kept below the directory that it names first. With --in it is kept in DIR, and runs of the same
# commit that have ended there before count: what one day is too short for goes on the next.
set -uo pipefail
into=
if [ "${1:-}" = --in ]; then
	into=$(realpath -m "${2:-}") || exit 2
	shift 2
fi
cd "$(dirname "$0")/.." || exit 1
runs=${1:-} noisy=${2:-0}
if ! [[ $runs =~ ^[1-9][0-9]*$ && $noisy =~ ^[0-9]+$ ]] || [ "$noisy" -gt "$runs" ]; then
	echo "usage: scripts/ci-often.sh [--in DIR] RUNS [BESIDE-NOISE [COMMIT]]" >&2
	exit 2
fi
commit=$(git rev-parse --verify -q "${3:-HEAD}^{commit}") || { echo "ci-often: no commit ${3:-HEAD}" >&2; exit 2; }
if [ -n "$into" ]; then
	logs=$into/$commit
	mkdir -p "$logs" || exit 1
else
	logs=$(mktemp -d "${TMPDIR:-/tmp}/scaffold-ci.XXXXXX")
fi
hogs=() run=
cleanup() {
	[ -z "$run" ] || { kill "$run"; wait "$run"; } # it ends what it has begun
	kill "${hogs[@]}" 2>/dev/null
	rm -rf "$logs/clone"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
echo "$runs runs of $(git log -1 --format='%h %s' "$commit"), what they print is in $logs"

hog() {
	for _ in $(seq "$(nproc)"); do
		while :; do :; done &
		hogs+=($!)
	done
}

quiet() {
	kill "${hogs[@]}"
	wait "${hogs[@]}"
	hogs=()
} 2>/dev/null

touch "$logs/runs" # a line for each that has ended: its number, how it ended, seconds, and whether it was beside noise
for i in $(seq "$runs"); do
	if line=$(grep "^$i " "$logs/runs"); then
		read -r _ what took beside <<<"$line"
		echo "before: run $i: $what after $took s${beside:+, $beside}"
		continue
	fi
	beside=
	if [ "$i" -le "$noisy" ]; then
		[ ${#hogs[@]} != 0 ] || hog
		beside='beside noise'
	elif [ ${#hogs[@]} != 0 ]; then
		quiet
	fi
	rm -rf "$logs/clone"
	git clone -q --no-local . "$logs/clone" && git -C "$logs/clone" checkout -q -B main "$commit" || exit 1
	begun=$SECONDS
	(cd "$logs/clone" && exec bash .ci/run) >"$logs/$i.log" 2>&1 </dev/null &
	run=$!
	if wait "$run"; then
		what=passed
	else
		what=FAILED
		mv "$logs/clone/bin/tests" "$logs/$i.tests" 2>/dev/null # all that was said
	fi
	run=
	took=$((SECONDS - begun))
	echo "$i $what $took $beside" >>"$logs/runs"
	echo "run $i: $what after $took s${beside:+, $beside}"
	grep -E '^(unsteady|FAILED): ' "$logs/$i.log" | sed 's/^/  /'
done
sort -n -k3 "$logs/runs" | awk '{ t[NR] = $3; passed += $2 == "passed" } END {
	printf "median %d s, longest %d s\n%d of %d passed\n", t[int((NR + 1) / 2)], t[NR], passed, NR; exit passed != NR }'
