#!/bin/bash
# Installs the package on three machines that boot systemd (scripts/machine.sh), runs the lines of
# docs/install.md on them word for word, and then what an operator meets later: restarts under load,
# an upgrade, a crash, systemd-resolved, uninstallation, purge. Then the lines where hosts reach their router by nothing
# but UDP over IPv4, and those by which an open network gets keys under a download. Root only; makes namespaces and
# leaves nothing.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

# leave waits for the machines' last processes, for a moment, and removes their cgroups.
leave() {
	local try
	for try in {1..100}; do
		grep -q 'populated 0' "$BOX_GROUP/cgroup.events" && break
		read -rt 0.05 <> <(:) || true
	done
	find "$BOX_GROUP" -depth -type d -exec rmdir {} +
	rmdir "$BOX" || echo "test-install: after try $try $BOX is not empty" >&2
}

if [ "${1:-}" != inside ]; then
	groups=/sys/fs/cgroup
	[ -e $groups/cgroup.controllers ] || groups=$groups/unified
	BOX=$(mktemp -d)
	BOX_GROUP=$groups/scaffold-install-$$
	export BOX BOX_GROUP
	mkdir "$BOX_GROUP"
	trap leave EXIT
	mkdir -p "$here/bin/deb"
	DEB=$(OUT=$here/bin/deb COMPRESS=0 BINARY=$here/bin/scaffold "$here/scripts/deb.sh")
	DEB2=$(OUT=$here/bin/deb COMPRESS=0 BINARY=$here/bin/scaffold VERSION="$(dpkg-deb -f "$DEB" Version).next" "$here/scripts/deb.sh")
	export DEB DEB2
	unshare --mount --pid --fork --net --uts --ipc --kill-child --mount-proc "$0" inside && rc=0 || rc=$?
	[ "$rc" != 0 ] || echo "test-install: all held"
	exit "$rc"
fi

machines="net1 web1 desk1"
on() {
	local machine=$1
	shift
	nsenter -t "$(cat "$BOX/$machine.pid")" -a env HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin "$@"
}

fail() {
	echo "test-install: $*" >&2
	for machine in $machines; do
		echo "--- $machine: failed units, journal" >&2
		on "$machine" systemctl --failed --no-legend --no-pager >&2 || true
		on "$machine" journalctl --no-pager -o short-iso -n 25 -u 'scaffold-*' >&2 || true
	done
	exit 1
}

# wants TEXT COMMAND...: its output has the text.
wants() {
	local text=$1 got
	shift
	got=$("$@" 2>&1) || fail "$* ended with $?: $got"
	grep -qE -- "$text" <<<"$got" || fail "$*: want $text, got: $got"
}

# becomes is wants for what takes a moment after a restart.
becomes() {
	local text=$1 try got
	shift
	for try in {1..100}; do
		got=$("$@" 2>&1) && grep -qE -- "$text" <<<"$got" && return
		read -rt 0.1 <> <(:) || true
	done
	fail "$*: after try $try want $text, got: $got"
}

boot() {
	local n=$1 name=$2 outer pid
	mkdir "$BOX_GROUP/$name" "$BOX/$name"
	bash -c 'echo $BASHPID >"$1/cgroup.procs"; exec unshare --mount --pid --fork --net --uts --ipc --cgroup --propagation private "$2" "$3" "$4"' \
		- "$BOX_GROUP/$name" "$here/scripts/machine.sh" "$name" "$BOX/$name" &
	outer=$!
	until pid=$(tr -d ' ' <"/proc/$outer/task/$outer/children") && [ -n "$pid" ] && grep -q systemd "/proc/$pid/cmdline"; do
		kill -0 $outer || fail "$name did not boot"
		read -rt 0.05 <> <(:) || true
	done
	echo "$pid" >"$BOX/$name.pid"
	ip link add "v$name" type veth peer name eth0 netns "$pid"
	ip link set "v$name" master segment up
	nsenter -t "$pid" -n ip addr add "192.0.2.$n/24" dev eth0
	nsenter -t "$pid" -n ip link set eth0 up
	until on "$name" systemctl is-system-running --wait >/dev/null 2>&1; do
		on "$name" systemctl is-system-running 2>/dev/null | grep -q degraded && fail "$name is degraded"
		read -rt 0.1 <> <(:) || true
	done
	on "$name" mkdir -p /srv
	on "$name" sh -c 'cat >/root/'"$(basename "$DEB")" <"$DEB"
	on "$name" sh -c 'cat >/tmp/next.deb' <"$DEB2"
}

# walk SECTION runs its blocks of the page: "# on NAME, NAME" says where, "# TEXT" behind a line what it prints.
# Where the page leaves a token out a fresh one is put in.
walk() {
	local line where="" inside="" section="" want machine got role token try
	while IFS= read -r line; do
		case $line in
		'## '*) section=${line#\#\# } ;;
		'```sh') inside=1 where="" ;;
		'```') inside="" ;;
		'# on '*) [ -z "$inside" ] || where=${line#\# on } where=${where//,/} ;;
		*)
			[ "$section" = "$1" ] && [ -n "$inside" ] && [ -n "$where" ] && [ -n "$line" ] || continue
			want=$(sed -n 's/.*  *# \(.*\)$/\1/p' <<<"$line")
			for machine in $where; do
				echo "$machine\$ ${line%%  \#*}"
				role=host token=""
				[[ $line != *--service* ]] || role=router
				[[ $line != *scaffold1-...* ]] || token=$(on net1 scaffold token create --role $role) || fail "no token for $machine"
				want=$(sed 's/  */ +/g' <<<"$want")
				# What only looks may look again: daemons that were told to start join a moment later.
				for try in {1..100}; do
					got=$(on "$machine" sh -c 'cd /root; sudo() { "$@"; }; export DEBIAN_FRONTEND=noninteractive; '"${line/scaffold1-.../$token}" 2>&1 </dev/null) ||
						fail "on $machine: $line: ended with $?: $got"
					[ -n "$want" ] && ! grep -qE "$want" <<<"$got" && [[ $line == *scaffold*\ ls\ * ]] || break
					read -rt 0.1 <> <(:) || true
				done
				grep '^note:' <<<"$got" || true
				[ -z "$want" ] || grep -qE "$want" <<<"$got" || fail "on $machine: $line: after try $try want $want, got: $got"
			done
			;;
		esac
	done <"$here/docs/install.md"
}

# found waits until desk1 finds the name.
found() {
	local try
	for try in {1..150}; do
		on desk1 getent ahostsv6 "$1.svc" >/dev/null && return
		read -rt 0.1 <> <(:) || true
	done
	fail "desk1 does not find $1.svc after $try tries"
}

# slow [SERVICE] starts a download on desk1 that takes long, and rest waits for its end.
slow() {
	local from=${1:-web}
	on web1 sh -c 'head -c 3000000 /dev/zero >/srv/big'
	on desk1 rm -f /tmp/big
	found "$from" # names are not answered while a daemon restarts
	on desk1 curl --no-progress-meter --limit-rate 250k -o /tmp/big "http://$from.svc/big" &
	download=$!
	until [ "$(on desk1 sh -c 'stat -c %s /tmp/big 2>/dev/null || echo 0')" -gt 100000 ]; do
		kill -0 $download || fail "the download ended before anything was done to it"
	done
}

rest() {
	wait $download || fail "a flow did not live through $*: curl ended with $?"
	wants 3000000 on desk1 stat -c %s /tmp/big
	echo "a flow lived through $*"
}

ip link set lo up
ip link add segment type bridge
ip link set segment up
mount -t tmpfs none "$BOX"
n=0
for machine in $machines; do boot $((n += 1)) "$machine"; done
for machine in $machines; do on "$machine" sh -c 'cd /; find etc var/lib -xdev \( -type f -o -type l \) | sort' >"$BOX/$machine.before"; done
on desk1 cat /etc/resolv.conf >"$BOX/resolv.conf"

started=$SECONDS
walk "Three machines"
echo "the walk took $((SECONDS - started)) s"
becomes keys on net1 scaffold status
wants 'host +web1' on net1 scaffold token members
# To install again opens nothing, whatever is typed.
wants 'log-level: info \(new\)' on net1 scaffold install controller --network lab --log-level info
wants 'trust: keys' on net1 cat /etc/scaffold/controld.yaml
wants 'has keys' on net1 sh -c 'scaffold install controller --trust open 2>&1 && echo it was opened || true'
becomes keys on net1 scaffold status
wants 'join it with a token|credential' on web1 sh -c 'scaffold state backup /tmp/stolen --api http://192.0.2.1:23728 2>&1 || true'

# Who speaks to a host's daemon does not rule the network, and is told which group does.
on net1 useradd --groups scaffold guest1
wants 'group scaffold-admin' on net1 setpriv --reuid=guest1 --regid=guest1 --init-groups env HOME=/nonexistent sh -c 'scaffold service create stolen 2>&1 || true'
wants 'service create|stolen' on net1 sh -c 'usermod -aG scaffold-admin guest1 && setpriv --reuid=guest1 --regid=guest1 --init-groups env HOME=/nonexistent scaffold service create stolen && scaffold service rm stolen --force && echo stolen'
on net1 userdel guest1

# Daemons are what the units say.
wants '^Uid:\s+[1-9]' on net1 sh -c 'grep Uid: /proc/$(systemctl show -P MainPID scaffold-controld)/status'
wants '^CapBnd:\s+0000000000000000' on net1 sh -c 'grep CapBnd: /proc/$(systemctl show -P MainPID scaffold-controld)/status'
for unit in scaffold-controld scaffold-routerd; do on net1 systemd-analyze verify "$unit.service" || fail "$unit: verify"; done
on web1 systemd-analyze verify scaffold-hostd.service || fail "scaffold-hostd: verify"
wants '^Saved|exposure level' on net1 systemd-analyze security --no-pager --threshold=25 scaffold-controld.service
on net1 systemd-analyze security --no-pager scaffold-controld.service scaffold-routerd.service 2>/dev/null | grep -i overall || true
on web1 systemd-analyze security --no-pager scaffold-hostd.service 2>/dev/null | grep -i overall || true
on net1 man -w scaffold-hostd scaffold.yaml >/dev/null || fail "no manual"

# A guest of a daemon with the unit's rights finds the name, and goes with its namespace.
on web1 sh -c 'ip netns add box && scaffold guest add box' >/dev/null || fail "a guest of an installed host"
wants hello on web1 ip netns exec box curl --no-progress-meter http://web.svc/
on web1 ip netns del box
until [ "$(on web1 scaffold guest ls -o json | grep -c box)" = 0 ]; do read -rt 0.1 <> <(:) || true; done
wants 'scaffold.*guest.*hook' on web1 cat /usr/share/containers/oci/hooks.d/scaffold.json

# Flows live through restarts, an upgrade and a crash.
slow
on web1 systemctl restart scaffold-hostd
on desk1 systemctl restart scaffold-hostd
on net1 systemctl restart scaffold-routerd scaffold-controld
rest "restarts of all daemons"
slow
for machine in $machines; do on "$machine" env DEBIAN_FRONTEND=noninteractive dpkg -i /tmp/next.deb >/dev/null 2>&1 || fail "$machine: upgrade"; done
rest "an upgrade of the package everywhere"
wants next on web1 dpkg-query -W scaffold
slow
on web1 systemctl kill -s KILL scaffold-hostd
rest "a crash"
until on web1 systemctl is-active --quiet scaffold-hostd; do # after RestartSec=
	on web1 systemctl is-failed --quiet scaffold-hostd && fail "a daemon that was killed is not started again"
	read -rt 0.1 <> <(:) || true
done
wants 'is installed and runs' on web1 scaffold install host --uplink eth0
on web1 scaffold install host --name other --uplink eth0 --dry-run >/dev/null || fail "a dry run"

# systemd-resolved instead of a plain file.
if [ -n "${RESOLVED_DEB:=$(ls "$here"/bin/deb/systemd-resolved_*.deb 2>/dev/null | tail -1)}" ]; then
	on desk1 scaffold uninstall --keep-config host
	on desk1 cmp /etc/resolv.conf - <"$BOX/resolv.conf" || fail "resolv.conf is not as it was"
	on desk1 sh -c 'cat >/tmp/r.deb; dpkg -i --force-depends /tmp/r.deb >/dev/null 2>&1; systemctl start systemd-resolved; ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf' <"$RESOLVED_DEB"
	wants 'installed and runs' on desk1 scaffold install host
	wants hello on desk1 curl --retry 9 --retry-all-errors --retry-delay 1 --no-progress-meter http://web.svc/
	wants 'fd5c:' on desk1 resolvectl query web.svc
	on desk1 scaffold uninstall --keep-config host
	on desk1 sh -c 'test ! -e /etc/systemd/resolved.conf.d/scaffold.conf' || fail "resolved's drop-in is left"
	wants 'installed and runs' on desk1 scaffold install host
	echo "systemd-resolved finds the names"
else
	echo "systemd-resolved was left out: put its package into bin/deb"
fi

# Agents of boost beside hosts: they join, one gets another key, and they leave; their trunk stands all the time.
for machine in web1 desk1; do
	on "$machine" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 # an agent is on the hosts' way
	wants 'installed and runs' on "$machine" scaffold join --install --token "$(on net1 scaffold token create --role agent)" \
		--door "$(on "$machine" ip -4 -br addr show eth0 | grep -o '192\.0\.2\.[0-9]*')" --port eth0
	on net1 scaffold boost site set "of-$machine" --prefix "$(on "$machine" ip -4 -br addr show eth0 | grep -o '192\.0\.2\.[0-9]*')" --agent "$machine" >/dev/null
done
becomes 'web1 +of-web1 +here .* desk1 [0-9]' on net1 scaffold boost agent ls
on web1 systemd-analyze verify scaffold-boostd.service || fail "scaffold-boostd: verify"
wants 'agent web1 has the key [0-9a-f]{8} now' on web1 scaffold rotate --state /var/lib/scaffold/boostd
wants 'agent.rotate +web1' on net1 scaffold events
on web1 systemctl reload scaffold-boostd
becomes 'another worker has taken over' on web1 journalctl --no-pager -u scaffold-boostd
becomes 'web1 +of-web1 +here .* desk1 [0-9]' on net1 scaffold boost agent ls
for machine in web1 desk1; do
	on "$machine" systemctl stop scaffold-boostd
	wants "agent $machine has left its network" on "$machine" scaffold leave --state /var/lib/scaffold/boostd --config /etc/scaffold/boostd.yaml
	on "$machine" scaffold uninstall agent >/dev/null
	on "$machine" sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0
done
wants nothing on net1 sh -c 'scaffold token members | grep ^agent | grep -v revoked || echo nothing'

# purge takes the package off, and looks that nothing is left.
purge() {
	local machine=$1 left
	on "$machine" dpkg --purge scaffold >/dev/null 2>&1 || fail "$machine: purge"
	on "$machine" sh -c 'cd /; find etc var/lib -xdev \( -type f -o -type l \) | sort' >"$BOX/$machine.after"
	left=$(comm -13 "$BOX/$machine.before" "$BOX/$machine.after" | grep -vE '^var/lib/(dpkg|apt|systemd|ucf|dbus|private)|^etc/(passwd|group|shadow|gshadow|subuid|subgid)-?$|\.pid$|resolve|^etc/(systemd/resolved|dbus|machine-id)|ld.so.cache|^etc/\.(pwd|updated)' || true)
	[ -z "$left" ] || fail "$machine: left after purge: $left"
	wants nothing on "$machine" sh -c 'getent passwd scaffold || getent group scaffold-admin || echo nothing'
	wants nothing on "$machine" sh -c 'test -e /run/scaffold && ls -R /run/scaffold || echo nothing'
	wants nothing on "$machine" sh -c 'pgrep -x scaffold || echo nothing'
	wants nothing on "$machine" sh -c 'ip -o link | grep -E "sc[thr][0-9]" || echo nothing'
}

# An end leaves the network; uninstallation and purge leave nothing.
on web1 systemctl stop web
on web1 scaffold uninstall host
wants 'inactive|unknown' on web1 sh -c 'systemctl is-active scaffold-hostd || true'
on web1 cmp /etc/resolv.conf - <"$BOX/resolv.conf" || fail "resolv.conf is not as it was"
for machine in $machines; do purge "$machine"; done
echo "nothing is left on any machine"

# Without multicast between the machines: no router is heard, no neighbour found by IPv6.
for machine in $machines; do
	ip link set "v$machine" type bridge_slave mcast_flood off
	on "$machine" sh -c 'dpkg -i /root/*.deb >/dev/null 2>&1' || fail "$machine: the package again"
done
started=$SECONDS
walk "Machines that share no link"
echo "the walk without a link took $((SECONDS - started)) s"
for machine in web1 desk1; do becomes 'wireguard to r1 at 192.0.2.1:23730' on "$machine" scaffold host status; done
becomes keys on net1 scaffold status
on net1 scaffold service create web >/dev/null
on web1 systemd-run -q --unit web2 scaffold run --service web -- python3 -m http.server 80 --bind :: --directory /srv
wants hello on desk1 curl --retry 9 --retry-all-errors --retry-delay 1 --no-progress-meter http://web.svc/
slow
on web1 systemctl restart scaffold-hostd
on desk1 systemctl kill -s KILL scaffold-hostd
on net1 systemctl restart scaffold-routerd scaffold-controld
rest "restarts and a crash, through tunnels"
on web1 systemctl stop web2
# A daemon that was killed and is not started again leaves its tunnel, and uninstallation removes that.
on web1 sh -c 'mkdir -p /run/systemd/system/scaffold-hostd.service.d && printf "[Service]\nRestart=no\n" >/run/systemd/system/scaffold-hostd.service.d/no.conf && systemctl daemon-reload'
on web1 systemctl kill --kill-who=main -s KILL scaffold-hostd
wants 'sct0' on web1 ip -o link
for machine in $machines; do purge "$machine"; done
echo "nothing is left on any machine, after tunnels too"

# One machine is all that a network has; then the others join, and one of these becomes a router under a download.
for machine in $machines; do
	ip link set "v$machine" type bridge_slave mcast_flood on
	on "$machine" sh -c 'dpkg -i /root/*.deb >/dev/null 2>&1' || fail "$machine: the package for one machine"
done
walk "One machine for everything"
becomes 'sch0 +up +net1' on net1 scaffold host status
for machine in web1 desk1; do
	on "$machine" scaffold join --install --token "$(on net1 scaffold token create --role host)" >/dev/null || fail "$machine: join"
done
on net1 scaffold service create far >/dev/null
on web1 systemd-run -q --unit far scaffold run --service far -- python3 -m http.server 80 --bind :: --directory /srv
wants 'hello from net1' on desk1 curl --retry 9 --retry-all-errors --retry-delay 1 --no-progress-meter http://web.svc/
wants 'hello from web1' on net1 curl --retry 9 --retry-all-errors --retry-delay 1 --no-progress-meter http://far.svc/
slow far
on net1 systemctl restart scaffold-hostd scaffold-routerd scaffold-controld
on desk1 scaffold join --service --install --token "$(on net1 scaffold token create --role router)" >/dev/null || fail "desk1: join as a router"
becomes 'sch0 +up +desk1' on desk1 scaffold host status
rest "its host's machine becoming a router"
on desk1 scaffold uninstall router
becomes 'eth0 +up +net1' on desk1 scaffold host status
wants 'hello from web1' on desk1 curl --retry 9 --retry-all-errors --retry-delay 1 --no-progress-meter http://far.svc/
wants nothing on desk1 sh -c 'ip -o link | grep -E "sc[hr]0" || echo nothing'
on net1 systemctl stop web
on net1 scaffold uninstall host
wants nothing on net1 sh -c 'ip -o link | grep -E "sc[hr]0" || echo nothing'
wants 'hello from web1' on desk1 curl --retry 9 --retry-all-errors --retry-delay 1 --no-progress-meter http://far.svc/
on web1 systemctl stop far
for machine in $machines; do purge "$machine"; done
echo "nothing is left on any machine, after one with every role too"

# An open network, which gets keys while a download goes on.
for machine in $machines; do
	on "$machine" sh -c 'dpkg -i /root/*.deb >/dev/null 2>&1' || fail "$machine: the package once more"
done
walk "An open network, for a trial"
becomes "open" on net1 sh -c "scaffold status || true"
wants '192\.0\.2\.1:23728' on net1 ss -Hltn sport = 23728
on net1 scaffold service create web >/dev/null
on web1 systemd-run -q --unit web3 scaffold run --service web -- python3 -m http.server 80 --bind :: --directory /srv
wants hello on desk1 curl --retry 9 --retry-all-errors --retry-delay 1 --no-progress-meter http://web.svc/
wants 'next: scaffold install controller --trust keys' on net1 sh -c 'DEBIAN_FRONTEND=noninteractive dpkg -i /tmp/next.deb 2>&1'
slow
walk "An open network becomes one with keys"
rest "an open network that gets keys"
becomes keys on net1 scaffold status
for machine in web1 desk1; do wants "host +$machine" on net1 scaffold token members; done
wants hello on desk1 curl --retry 9 --retry-all-errors --retry-delay 1 --no-progress-meter http://web.svc/
wants 'has keys' on net1 sh -c 'scaffold install controller --trust open 2>&1 || true'
on web1 systemctl stop web3
for machine in $machines; do purge "$machine"; done
echo "nothing is left on any machine, after the change too"
