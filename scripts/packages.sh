#!/bin/bash
# Installs the Debian packages that a set needs and that are not there: scripts/packages.sh demo test.
# No package gets to start a service on this machine, now or at its next boot. Root only; offline, or
# on another distribution, it names the programs that are missing.
set -euo pipefail
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
POLICY=/usr/sbin/policy-rc.d
MARK='# put here by scaffold for the time of an installation'
LOCK=/run/lock/scaffold-packages

# package:program; the program may be a pattern of paths. Having the program is enough.
demo='nginx-light:nginx curl:curl wget:wget apache2-utils:ab iproute2:ip openvswitch-switch:ovs-vswitchd openvswitch-common:ovs-ofctl'
boost='iperf3:iperf3 rsync:rsync'
routing='frr:/usr/lib/frr/zebra'
# Packages that would push out one that the machine has (its own time daemon): their program alone is unpacked, and
# what it links to is installed. Names the libraries behind the program.
apart='chrony:/usr/sbin/chronyd:libcap2,libedit2,libgnutls30,libnettle8,libseccomp2'
test="$demo socat:socat iperf3:iperf3 tftpd-hpa:in.tftpd tftp-hpa:tftp memcached:memcached libmemcached-tools:memccp pdns-server:pdns_server
	pdns-backend-bind:/usr/lib/*/pdns/libbindbackend.so dnsutils:dig redis-server:redis-server redis-tools:redis-benchmark
	openssh-server:sshd openssh-client:ssh postgresql:/usr/lib/postgresql/*/bin/postgres elinks:elinks
	tcpdump:tcpdump $routing ethtool:ethtool iputils-ping:ping nftables:nft spin:spin gcc:gcc libc6-dev:/usr/include/stdio.h
	python3:python3 black:black tshark:tshark prometheus:promtool haproxy:haproxy nghttp2-client:h2load nghttp2-server:nghttpd
	lighttpd:lighttpd mosquitto:mosquitto mosquitto-clients:mosquitto_sub git:git rsync:rsync chrony:chronyd snmpd:snmpd snmp:snmpget
	systemd:systemd-analyze netcat-openbsd:/bin/nc.openbsd nodejs:node openjdk-17-jre-headless:java ecj:ecj gunicorn:gunicorn"
bench="$demo nftables:nft haproxy:haproxy socat:socat iperf3:iperf3 mininet:mn frr:/usr/lib/frr/zebra iputils-ping:ping vsftpd:vsftpd"
experiments='nginx-light:nginx wget:wget memcached:memcached tftpd-hpa:in.tftpd tftp-hpa:tftp busybox:busybox iproute2:ip
	python3:python3 python3-matplotlib:/usr/lib/python3/dist-packages/matplotlib/__init__.py'
model='spin:spin gcc:gcc libc6-dev:/usr/include/stdio.h'
kernels='qemu-system-x86:qemu-system-x86_64 kmod:depmod xz-utils:xz'
generate='clang-19:clang-19 llvm-19:llvm-strip-19 libbpf-dev:/usr/include/bpf/bpf_helpers.h protobuf-compiler:protoc libprotobuf-dev:/usr/include/google/protobuf/struct.proto'

have() {
	case $1 in
	/*) compgen -G "$1" >/dev/null ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

# missing prints the packages of the sets (or package names) whose programs are not there.
missing() {
	local set entry
	for set in "$@"; do
		case $set in
		demo) entry=$demo ;;
		test) entry=$test ;;
		bench) entry=$bench ;;
		boost) entry=$boost ;;
		routing) entry=$routing ;;
		experiments) entry=$experiments ;;
		model) entry=$model ;;
		kernels) entry=$kernels ;;
		generate) entry=$generate ;;
		*:*) entry=$set ;;
		*)
			echo "packages.sh: no set \"$set\": want demo, test, bench, boost, routing, experiments, model, kernels, generate or PACKAGE:PROGRAM" >&2
			return 2
			;;
		esac
		for pair in $entry; do
			have "${pair#*:}" || echo "${pair%%:*}"
		done
	done | sort -u
}

ours() { [ -e "$POLICY" ] && grep -qF "$MARK" "$POLICY"; }

# forbid keeps invoke-rc.d from starting services. One that the machine has already is its owner's.
forbid() {
	if [ -e "$POLICY" ] && ! ours; then
		echo "packages: $POLICY exists and stays as it is; it decides whether services start"
		return
	fi
	printf '#!/bin/sh\n%s\nexit 101\n' "$MARK" >"$POLICY"
	chmod 755 "$POLICY"
}

allow() { if ours; then rm -f "$POLICY"; fi; }

# fetch speaks only when it fails.
fetch() {
	local log
	log=$(mktemp)
	if install "$@" >"$log" 2>&1; then
		rm -f "$log"
		return
	fi
	tail -n 20 "$log" >&2
	rm -f "$log"
	return 1
}

install() {
	DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
		-o Dpkg::Options::=--force-confold install --no-remove --no-install-recommends "$@" </dev/null
}

# unpack puts the program of a package that is kept apart into /usr/local/sbin.
unpack() {
	local dir
	dir=$(mktemp -d)
	(cd "$dir" && apt-get -q -o APT::Sandbox::User=root download "$1" >/dev/null && dpkg-deb -x ./*.deb . && cp ".$2" /usr/local/sbin/) || {
		rm -rf "$dir"
		return 1
	}
	rm -rf "$dir"
}

# libraries prints what is to be installed for those of the packages that are kept apart; others prints the rest.
libraries() {
	local pair
	for pair in $apart; do
		case " $* " in *" ${pair%%:*} "*) tr , ' ' <<<"${pair##*:}" ;; esac
	done
}
others() {
	local name
	for name in "$@"; do
		case " $apart " in *" $name:"*) ;; *) echo "$name" ;; esac
	done
}
unpack_all() {
	local pair path
	for pair in $apart; do
		path=${pair#*:}
		case " $* " in *" ${pair%%:*} "*) unpack "${pair%%:*}" "${path%%:*}" ;; esac
	done
}

installed() { dpkg-query -W -f='${db:Status-Abbrev} ${Package}\n' | awk '$1 == "ii" { print $2 }' | sort; }

# disable keeps what just came from starting at the next boot.
disable() {
	local files unit
	files=$(xargs -r dpkg -L)
	have systemctl || return 0
	for unit in $(echo "$files" | sed -n 's|^\(/usr\)\?/lib/systemd/system/\([^/@]*\.\(service\|socket\)\)$|\2|p'); do
		systemctl --quiet disable "$unit" >/dev/null 2>&1 || true
	done
}

main() {
	local list want
	list=$(missing "$@")
	read -r -d '' -a want <<<"$list" || true
	if [ ${#want[@]} = 0 ]; then
		echo "packages: all there for: $*"
		return
	fi
	if [ "$(id -u)" != 0 ] || ! have apt-get; then
		echo "packages: missing: ${want[*]}" >&2
		echo "hint: install them as root, with apt-get on Debian: apt-get install --no-install-recommends ${want[*]}" >&2
		return 1
	fi
	install_all "${want[@]}"
}

get() {
	# shellcheck disable=SC2046 # as above
	fetch $(others "$@") && unpack_all "$@"
}

install_all() {
	echo "packages: installing ${#want[@]}: $*"
	echo "packages: none of them will start a service on this machine"
	mkdir -p "$(dirname "$LOCK")"
	exec 9>"$LOCK"
	flock 9 # two installations at once would remove each other's policy-rc.d
	trap allow EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	forbid
	local before
	before=$(installed)
	# shellcheck disable=SC2046 # names of packages have no blanks
	set -- "$@" $(libraries "$@")
	if ! get "$@" && ! { echo "packages: once more with fresh lists" && apt-get -q update </dev/null >/dev/null && get "$@"; }; then
		echo "packages: could not install: $*" >&2
		echo "hint: is there a network, and does /etc/apt/sources.list name a mirror?" >&2
		return 1
	fi
	comm -13 <(echo "$before") <(installed) | disable
	echo "packages: installed: $*"
}

main "$@"
