#!/bin/bash
# Prints what a test or a lab could leave on this machine, for a comparison of before and after.
set -uo pipefail
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
echo "namespaces:"
ls /run/netns 2>/dev/null
echo "links:"
ip -brief link 2>/dev/null | awk '{ print $1 }'
echo "rules:"
ip -6 rule 2>/dev/null
echo "mounts:"
awk '$3 == "bpf" || $2 ~ /scaffold/ { print $2, $3 }' /proc/self/mounts
echo "cgroups:"
find /sys/fs/cgroup -maxdepth 3 -name '*scaffold*' 2>/dev/null
echo "run:"
find /run/scaffold -mindepth 1 2>/dev/null
echo "policy-rc.d:"
ls /usr/sbin/policy-rc.d 2>/dev/null
echo "processes:"
pgrep -x -a scaffold | cut -d' ' -f2- | sort
exit 0
