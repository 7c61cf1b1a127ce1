#!/bin/bash
# Checks the models with SPIN and prints what each run proved, over how many states: make model.
# Needs spin and gcc (scripts/packages.sh model).
set -euo pipefail
cd "$(dirname "$0")"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# run EXPECT MODEL PROPERTY TITLE DEFINES...: EXPECT is holds or fails.
run() {
	local expect=$1 model=$2 property=$3 title=$4 errors
	shift 4
	(
		cd "$dir" && rm -f pan* ./*.trail
		cp "$OLDPWD"/*.pml .
		spin "$@" -a "$model.pml" >spin.log 2>&1 || true
		[ -e pan.c ] || { cat spin.log >&2; exit 1; }
		gcc -O1 -w -DCOLLAPSE -DMEMLIM=2000 -DVECTORSZ=2048 -o pan pan.c
		./pan -a -n -m500000 -N "$property" >out 2>&1
	)
	errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' "$dir/out")
	printf '%-6s %-12s %-11s %-52s %9s states  %s\n' "$expect" "$model" "$property" "$title" \
		"$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' "$dir/out")" "$*"
	if grep -q 'max search depth too small\|out of memory' "$dir/out" || [ -z "$errors" ] ||
		{ [ "$expect" = holds ] && [ "$errors" != 0 ]; } || { [ "$expect" = fails ] && [ "$errors" = 0 ]; }; then
		echo "model: $model $property was expected to be: $expect; SPIN says:" >&2
		cat "$dir/out" >&2
		exit 1
	fi
}

r=renegotiate
run holds $r settles 'one end moves twice' -DMOVES0=2
run holds $r settles 'both ends move, one twice' -DMOVES0=2 -DMOVES1=1
run holds $r kept 'any loss and duplication: no flow is lost' -DMOVES0=1 -DMOVES1=1 -DLOSSES=255 -DCOPIED=255
run holds $r consistent 'any loss and duplication: the ends agree' -DMOVES0=1 -DMOVES1=1 -DLOSSES=255 -DCOPIED=255
run holds $r settles 'a copy; both copies and the peer move' -DMOVES0=1 -DMOVES1=1 -DMOVES2=1
run holds $r settles 'a copy that moves twice' -DMOVES0=1 -DMOVES2=2
run holds $r commits 'a copy that was confirmed keeps the flow' -DMOVES0=2 -DMOVES2=1
run holds $r settles 'one end closes while both move' -DMOVES0=1 -DMOVES1=1 -DCLOSES
run fails $r commits 'seeded bug: who stays keeps its socketID' -DMOVES0=2 -DMOVES2=1 -DBUG_KEEPS_SOCKET
f=failover
run holds $f settles 'an instance goes on, or the flow is reset' -DLOSSES=2
run holds $f stateless 'no state before a RACK' -DLOSSES=2
run holds $f single 'one instance at most is believed' -DLOSSES=2
run fails $f stateless 'seeded bug: state at the unresolved RSYN' -DLOSSES=2 -DBUG_EARLY_STATE
