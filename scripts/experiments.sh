#!/bin/bash
# Runs experiments by name and writes their results and plots into docs/experiments. The programs that
# they need beside the product are built next to it, where a lab finds them.
set -euo pipefail
cd "$(dirname "$0")/.."
for program in resume/httpd:resume-httpd resume/tftpd:resume-tftpd experiments/setload:setload; do
	CGO_ENABLED=0 scripts/go.sh build -buildvcs=false -trimpath -o "bin/${program#*:}" "./examples/${program%:*}"
done
failed=
for name in "$@"; do
	echo "experiment $name"
	if [[ $name == sos_* ]]; then # a part of the benchmarks: figures of configurations, not of seconds
		scripts/as-root.sh scripts/packages.sh demo boost >/dev/null
		scripts/as-root.sh bin/scaffold bench sos "$name" ${QUICK:+--quick} --to "${TO:-docs/experiments}" || failed="$failed $name"
		continue
	fi
	scripts/as-root.sh bin/scaffold lab run "examples/experiments/$name.yaml" --plot docs/experiments || failed="$failed $name"
done
# Run by root in somebody's tree: what was written is theirs.
[ "$(id -u)" != 0 ] || chown -R --reference=go.mod bin docs/experiments
if [ -n "$failed" ]; then
	echo "experiments that failed:$failed" >&2
	exit 1
fi
