#!/bin/bash
# Checks the models with SPIN and prints what each run proved, over how many states: make model.
# `model/check.sh long` makes the large runs too, whose last results stand in README.md: make model-long.
# A line of a model that no run reaches fails, unless it says why: /* unreached: REASON */.
# Needs spin and gcc (scripts/packages.sh model).
set -euo pipefail
cd "$(dirname "$0")"
long=${1:-}
here=$PWD
dir=$(mktemp -d)
# Runs go on side by side, one on each processor, but no more than have the memory that each may take.
set -m # each leads a process group, by which all of it ends with us
mebibytes=3000
fit=$(($(awk '/^MemAvailable/ {print $2}' /proc/meminfo) / 1024 / mebibytes))
most=$(nproc) runs=()
[ "$fit" -ge "$most" ] || most=$((fit > 1 ? fit : 1))
ended() {
	local group
	trap '' INT TERM HUP
	for group in $(jobs -p); do kill -- "-$group"; done 2>/dev/null
	wait
	rm -rf "$dir"
}
trap ended EXIT
# By themselves these would end the script before it has ended its jobs, which have no terminal's Ctrl-C.
trap 'exit 130' INT TERM HUP

# lines prints "MODEL.pml:LINE" of each statement that a verifier of SPIN has, and unreached that of each that its
# run did not come to. An inline is copied to each of its uses: a line is reached when one of its copies is.
lines() { sed -n "s|^.*// STATE \([0-9]*\) - $1.pml:\([0-9]*\) - .*|\1 \2|p" pan.m | sort -u; }
unreached() { sed -n "/unreached in proctype world/,/states)/s|^\s$1.pml:\([0-9]*\), state \([0-9]*\), .*|\2 \1|p" out | sort -u; }

# run EXPECT MODEL PROPERTY TITLE DEFINES...: EXPECT is holds or fails.
run() {
	while [ "$(jobs -rp | wc -l)" -ge "$most" ]; do wait -n; done
	mkdir "$dir/${#runs[@]}"
	check "$dir/${#runs[@]}" "$@" &
	runs+=($!)
}

# check makes one run, in a directory of its own.
check() {
	local expect=$2 model=$3 property=$4 title=$5 errors
	cd "$1"
	shift 5
	cp "$here"/*.pml .
	spin "$@" -a "$model.pml" >spin.log 2>&1 || true
	[ -e pan.c ] || { cat spin.log >&2; exit 1; }
	gcc ${OPTIMIZE:--O1} -w -DCOLLAPSE -DMEMLIM=$mebibytes -DVECTORSZ=2048 -o pan pan.c
	./pan -a -m500000 -N "$property" >out 2>&1
	errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' out)
	printf '%-6s %-12s %-11s %-52s %9s states  %s\n' "$expect" "$model" "$property" "$title" \
		"$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' out)" "$*"
	if grep -q 'max search depth too small\|out of memory' out || [ -z "$errors" ] ||
		{ [ "$expect" = holds ] && [ "$errors" != 0 ]; } || { [ "$expect" = fails ] && [ "$errors" = 0 ]; }; then
		echo "model: $model $property was expected to be: $expect; SPIN says:" >&2
		cat out >&2
		exit 1
	fi
	if [ "$expect" = holds ]; then # a run with a bug ends where it is found
		lines "$model" | sed "s|.* |$model.pml:|" >all
		comm -23 <(lines "$model") <(unreached "$model") | sed "s|.* |$model.pml:|" >reached
	fi
}

# large is a run that takes longer than a change should wait for.
large() { [ "$long" != long ] || OPTIMIZE=-O2 run "$@"; }

r=renegotiate
run holds $r settles 'one end moves twice' -DMOVES0=2
run holds $r settles 'both ends move, one twice' -DMOVES0=2 -DMOVES1=1
run holds $r kept 'any loss and duplication: no flow is lost' -DMOVES0=1 -DMOVES1=1 -DLOSSES=255 -DCOPIED=255
run holds $r consistent 'any loss and duplication: the ends agree' -DMOVES0=1 -DMOVES1=1 -DLOSSES=255 -DCOPIED=255
run holds $r settles 'a copy; both copies and the peer move' -DMOVES0=1 -DMOVES1=1 -DMOVES2=1
run holds $r settles 'a copy that moves twice' -DMOVES0=1 -DMOVES2=2
run holds $r commits 'a copy that was confirmed keeps the flow' -DMOVES0=2 -DMOVES2=1
run holds $r commits 'the same while the peer moves' -DMOVES0=1 -DMOVES1=1 -DMOVES2=1
run holds $r one 'the peer is with one copy at most' -DMOVES0=1 -DMOVES1=1 -DMOVES2=1
run holds $r one 'the same under any loss and duplication' -DMOVES0=1 -DMOVES2=1 -DLOSSES=255 -DCOPIED=255
run holds $r settles 'one end closes while both move' -DMOVES0=1 -DMOVES1=1 -DCLOSES
run fails $r commits 'seeded bug: who stays keeps its socketID' -DMOVES0=2 -DMOVES2=1 -DBUG_KEEPS_SOCKET
large holds $r settles 'both ends move twice' -DMOVES0=2 -DMOVES1=2
large holds $r commits 'the peer moves, any loss and duplication' -DMOVES0=1 -DMOVES1=1 -DMOVES2=1 -DLOSSES=255 -DCOPIED=255

f=failover
run holds $f settles 'an instance goes on, or the flow is reset' -DMOVES=0
run holds $f stateless 'no state before a RACK' -DTRIES=3
run holds $f single 'one instance at most is believed' -DTRIES=3
run holds $f kept 'who has an instance keeps it, whatever comes late' -DTRIES=3
run holds $f settles 'one of the two cannot resume' -DUNABLE -DTRIES=3
run holds $f settles 'the instance that goes on dies, too' -DDIES=1 -DTRIES=3 -DMOVES=0 -DLOSSES=0 -DCOPIED=0
run fails $f stateless 'seeded bug: state at the unresolved RESUME' -DBUG_EARLY_STATE
run fails $f single 'seeded bug: an instance forgets what ended' -DBUG_FORGETS
run fails $f single 'seeded bug: a client asks anew as the same' -DBUG_SAME_EPOCH
large holds $f settles 'the same, four messages, moves' -DTRIES=4
large holds $f single 'an instance dies, loss and duplication' -DDIES=1 -DTRIES=3 -DMOVES=0
large holds $f settles 'an instance dies, loss' -DDIES=1 -DTRIES=3 -DMOVES=0 -DCOPIED=0
large holds $f settles 'the client moves twice' -DMOVES=2 -DTRIES=3 -DLOSSES=0

for pid in "${runs[@]}"; do wait "$pid"; done

# A process that never ends does not come to its brace.
sort -u "$dir"/*/all | comm -23 - <(sort -u "$dir"/*/reached) | while IFS=: read -r model line; do
	sed -n "${line}{/^}$/!s|^[[:space:]]*|$model:$line: |p}" "$model"
done >"$dir/missed"
grep -n '/\* unreached: ' ./*.pml | sed 's|^\./||; s|:[[:space:]]*|: |2' | sort >"$dir/known" || true
if ! diff <(sort "$dir/missed") "$dir/known" >"$dir/differ"; then
	echo "model: lines that no run reaches (<) and are not marked /* unreached: REASON */, or that are marked and reached (>):" >&2
	grep '^[<>]' "$dir/differ" >&2
	exit 1
fi
echo "all $(sort -u "$dir"/*/all | wc -l) lines are reached but $(wc -l <"$dir/known"), whose reasons stand beside them"
