#!/bin/bash
# Builds bin/scaffold_VERSION_ARCH.deb: the program, units that nobody enables, manual and completion.
# Needs dpkg-deb and Go; the same commit gives the same bytes. OUT=DIR puts it elsewhere, VERSION= and
# BINARY= take another version or a program that is built already (tests of an upgrade do).
set -euo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-bin}
git=(git -c safe.directory='*')
revision=$("${git[@]}" rev-parse HEAD 2>/dev/null || echo unknown)
described=$("${git[@]}" describe --tags --always --dirty 2>/dev/null || echo unknown)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$("${git[@]}" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
# v1.2.3 is 1.2.3, and what follows a tag follows it; without a tag the time of the commit orders them.
case $described in
v[0-9]*) version=$(echo "${described#v}" | sed 's/-\([0-9]*-g\)/+\1/; s/-/./g') ;;
*) version=0~$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S)+${described//-/.} ;;
esac
version=${VERSION:-$version}
arch=$(dpkg --print-architecture)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/scaffold
install -d -m 755 "$root/DEBIAN" "$root/usr/bin" "$root/usr/share/doc/scaffold" "$root/usr/share/lintian/overrides"
if [ -n "${BINARY:-}" ]; then
	cp "$BINARY" "$root/usr/bin/scaffold"
else
	CGO_ENABLED=0 scripts/go.sh build -buildvcs=false -trimpath \
		-ldflags "-s -w -X scaffold.dev/scaffold/internal/operate/obs.version=$described -X scaffold.dev/scaffold/internal/operate/obs.revision=$revision" -o "$root/usr/bin/scaffold" ./cmd/scaffold
fi
chmod 755 "$root/usr/bin/scaffold"
"$root/usr/bin/scaffold" packaging "$root"
{
	printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: scaffold\nSource: https://scaffold.dev\n\n'
	printf 'Files: *\nCopyright: (c) The Scaffold authors\nLicense: Apache-2.0\n On Debian systems it is in /usr/share/common-licenses/Apache-2.0.\n'
	printf ' The programs for the kernel that are in it are under GPL-2.0 or BSD-2-Clause, as you choose;\n'
	printf ' GPL-2.0 is in /usr/share/common-licenses/GPL-2.\n'
} >"$root/usr/share/doc/scaffold/copyright"
printf 'scaffold (%s) unstable; urgency=medium\n\n  * Built from commit %s.\n\n -- The Scaffold authors <packages@scaffold.dev>  %s\n' \
	"$version" "$described" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$root/usr/share/doc/scaffold/changelog.gz"
install -m 644 packaging/debian/lintian-overrides "$root/usr/share/lintian/overrides/scaffold"
for script in postinst prerm postrm; do install -m 755 "packaging/debian/$script" "$root/DEBIAN/$script"; done
size=$(du -k -s --apparent-size "$root/usr" | cut -f1)
sed "s/@VERSION@/$version/; s/@ARCH@/$arch/; s/@SIZE@/$size/" packaging/debian/control >"$root/DEBIAN/control"
(cd "$root" && find usr lib -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
find "$root" -type d -exec chmod 755 {} +
mkdir -p "$out"
dpkg-deb --root-owner-group -Zxz -z"${COMPRESS:-6}" --build "$root" "$out/scaffold_${version}_$arch.deb" >/dev/null
[ "$(id -u)" != 0 ] || [ "$out" != bin ] || chown -R --reference=go.mod bin
echo "$out/scaffold_${version}_$arch.deb"
