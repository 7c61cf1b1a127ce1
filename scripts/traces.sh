#!/bin/bash
# Prints what a test or a lab could leave on this machine, a line each that says of which kind it is, for a comparison of
# before and after. What others make meanwhile is not listed: interfaces of containers, and processes that are neither
# scaffold nor of the run whose number is in SCAFFOLD_RUN.
set -uo pipefail
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
for program in ip ps pgrep; do
	command -v "$program" >/dev/null || { echo "traces.sh: $program is missing" >&2; exit 1; }
done

# others prints those processes that neither this one comes from, nor come from it.
others() {
	ps -eo pid=,ppid= | awk -v self="$$" '
		{ parent[$1] = $2 }
		END {
			for (p = self; p in parent; p = parent[p]) above[p] = 1
			for (p in parent) {
				for (q = p; q != self && q in parent; q = parent[q]);
				if (q != self && !(p in above)) print p
			}
		}'
}

# processes prints those that may be a run's: each inherits its number, but for programs that write over their environment
# and those that are started with none.
processes() {
	local pid
	for pid in $(others); do
		if [ -n "${SCAFFOLD_RUN:-}" ] && grep -qsz "^SCAFFOLD_RUN=$SCAFFOLD_RUN\$" "/proc/$pid/environ" ||
			[ "$(cat "/proc/$pid/comm" 2>/dev/null)" = scaffold ]; then
			echo "$pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"
		fi
	done 2>/dev/null
}

each() { sed "s/^/$1: /"; }
ls /run/netns 2>/dev/null | grep -v '^cni-' | each namespace
ip -brief link 2>/dev/null | awk '{ print $1 }' | grep -vE '^(veth|docker|br-|cni|cali)' | each link
ip rule 2>/dev/null | each 'rule of IPv4'
ip -6 rule 2>/dev/null | each rule
awk '$2 ~ /scaffold/ || $3 == "bpf" && $2 ~ /^.(run|tmp)/ { print $2, $3 }' /proc/self/mounts | each mount
find /sys/fs/cgroup -maxdepth 3 -name '*scaffold*' 2>/dev/null | each cgroup
find /run/scaffold -mindepth 1 2>/dev/null | each file
ls /usr/sbin/policy-rc.d 2>/dev/null | each file
processes | each process
exit 0
