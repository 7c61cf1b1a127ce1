#!/bin/bash
# Prints what a test or a lab could leave on this machine, a line each that says of which kind it is, for a comparison of
# before and after.
set -uo pipefail
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# processes prints those of a run that outlive it: they have its number in their environment, SCAFFOLD_RUN, which is the
# process that began it, and are no descendants of that. What others start meanwhile has no such number.
processes() {
	[ -n "${SCAFFOLD_RUN:-}" ] || return
	local pid
	for pid in $(ps -eo pid=,ppid= | awk -v top="$SCAFFOLD_RUN" '
		{ parent[$1] = $2 }
		END { for (p in parent) { for (q = p; q != top && q in parent; q = parent[q]); if (q != top) print p } }'); do
		grep -qsz "^SCAFFOLD_RUN=$SCAFFOLD_RUN\$" "/proc/$pid/environ" && echo "$pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"
	done
}

each() { sed "s/^/$1: /"; }
ls /run/netns 2>/dev/null | each namespace
ip -brief link 2>/dev/null | awk '{ print $1 }' | each link
ip rule 2>/dev/null | each 'rule of IPv4'
ip -6 rule 2>/dev/null | each rule
awk '$3 == "bpf" || $2 ~ /scaffold/ { print $2, $3 }' /proc/self/mounts | each mount
find /sys/fs/cgroup -maxdepth 3 -name '*scaffold*' 2>/dev/null | each cgroup
find /run/scaffold -mindepth 1 2>/dev/null | each file
ls /usr/sbin/policy-rc.d 2>/dev/null | each file
processes | each process
exit 0
