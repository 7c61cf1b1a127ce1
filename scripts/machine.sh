#!/bin/bash
# Boots a machine of a test: systemd as process 1 over an overlay of this machine's files, in namespaces
# that the caller has made (unshare --mount --pid --fork --net --uts --ipc --cgroup). Nothing that is
# written gets out of it. scripts/machine.sh NAME DIRECTORY
set -euo pipefail
name=$1 dir=$2
mkdir -p "$dir"
mount -t tmpfs -o mode=755 machine "$dir"
mkdir "$dir/upper" "$dir/work" "$dir/root"
mount -t overlay -o "lowerdir=/,upperdir=$dir/upper,workdir=$dir/work" machine "$dir/root"
cd "$dir/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do
	touch "dev/$device"
	mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm dev/net
if [ -e /dev/net/tun ]; then # for WireGuard in user space
	touch dev/net/tun
	mount --bind /dev/net/tun dev/net/tun
fi
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
mount -t tmpfs tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
for fd in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${fd%:*}" "dev/${fd#*:}"; done
ln -s /proc/self/fd dev/fd
# A fresh machine: none of this one's services, no scaffold, a resolver's file as a provider would write it.
rm -rf etc/systemd/system/*.wants lib/systemd/system/multi-user.target.wants etc/rc?.d usr/sbin/policy-rc.d
rm -rf etc/scaffold var/lib/scaffold usr/local/bin/scaffold usr/bin/scaffold
rm -rf etc/apt/apt.conf.d/*packagekit* var/lib/man-db/auto-update # what takes long and is not looked at
: >etc/machine-id
echo "$name" >etc/hostname
rm -f etc/resolv.conf
printf '# the provider\nsearch example.org\nnameserver 192.0.2.254\noptions timeout:1\n' >etc/resolv.conf
hostname "$name"
mkdir .old
pivot_root . .old
# Mounts are shared with services, as systemd has it on a machine and leaves it to others in a container.
# shellcheck disable=SC2016
container=scaffold PATH=/usr/sbin:/usr/bin:/sbin:/bin exec chroot . /bin/sh -c \
	'umount -l /.old && rmdir /.old; mount --make-rshared /; exec /lib/systemd/systemd --unit=multi-user.target </dev/null >/dev/null 2>&1'
