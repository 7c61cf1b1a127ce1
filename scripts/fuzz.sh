#!/bin/bash
# Runs every fuzz target for a time: scripts/fuzz.sh 10m [REGEXP of PACKAGE/TARGET]; AT_A_TIME=4 runs four side by side.
# What makes one fail is kept where its test will find it, in testdata/fuzz of its package: commit it with the fix.
# Inputs that came to new code are kept in Go's cache for the next time. Targets that need root run where we are root,
# and are left out elsewhere.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:?usage: scripts/fuzz.sh TIME [REGEXP]}
only=${2:-.}
export CGO_ENABLED=0
if [ "$(id -u)" = 0 ]; then export SCAFFOLD_ROOT_TESTS=1; else export SCAFFOLD_ROOT_TESTS=0; fi

# fuzz runs one target and says what came out.
fuzz() {
	local dir=$1 name=$2 module=. out
	out=$(mktemp)
	case $dir in bench/*) module=bench ;; esac # a module of its own
	# -fuzzminimizetime: of what is only new, the shortest form is worth no more than a second.
	if scripts/go.sh -C "$module" test "./${dir#"${module#.}"/}" -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 1s ${PARALLEL:+-parallel "$PARALLEL"} >"$out" 2>&1; then
		printf 'ok    %-36s %-22s %s\n' "$dir" "$name" "$(sed -n 's/^fuzz: elapsed: [^,]*, \(execs: [0-9]*\).*\(new interesting: .*\)$/\1, \2/p' "$out" | tail -n 1)"
	else
		printf 'FAIL  %-36s %s\n' "$dir" "$name"
		sed 's/^/      /' "$out"
	fi
	rm "$out"
}
export -f fuzz
export time

targets() {
	git grep -h --heading -o '^func Fuzz[A-Za-z0-9_]*(f \*testing.F)' -- '*_test.go' |
		awk '/_test\.go$/ { sub(/\/?[^\/]*$/, ""); dir = $0; next } { sub(/^func /, ""); sub(/\(.*/, ""); print dir " " $0 }' |
		sort -u | awk -v only="$only" '($1 "/" $2) ~ only'
}

said=$(mktemp)
trap 'rm -f "$said"' EXIT
targets | xargs -r -P "${AT_A_TIME:-1}" -L 1 bash -c 'fuzz "$@"' - | tee "$said"
echo "fuzz targets: $(grep -c '^ok ' "$said" || true) passed, $(grep -c '^FAIL ' "$said" || true) failed, $time each"
git status --short -- '*/testdata/fuzz/*' | sed 's/^/kept: /'
! grep -q '^FAIL ' "$said"
