#!/bin/bash
# Plays the demo many times, each beside as many busy loops as there are processors, and says how often all of it held:
# scripts/demo-often.sh 50 [arguments of scaffold demo]. Needs root and what `make demo` needs.
set -uo pipefail
cd "$(dirname "$0")/.."
if ! [[ ${1:-} =~ ^[1-9][0-9]*$ ]]; then
	echo "usage: scripts/demo-often.sh TIMES [ARGUMENTS OF scaffold demo]" >&2
	exit 2
fi
times=$1
shift
scripts/build.sh
hogs=() out=$(mktemp)
trap 'kill "${hogs[@]}" 2>/dev/null; rm -f "$out"' EXIT
trap 'exit 130' INT TERM # once the demo has taken its lab down
for _ in $(seq "$(nproc)"); do
	while :; do :; done &
	hogs+=($!)
done
held=0
for i in $(seq "$times"); do
	if bin/scaffold demo "$@" >"$out" 2>&1; then
		held=$((held + 1))
	else
		echo "run $i did not hold:"
		cat "$out"
	fi
	grep 'held not ready' "$out"
done
echo "$held of $times runs held, beside $(nproc) busy loops"
[ "$held" = "$times" ]
