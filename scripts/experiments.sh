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
	scripts/as-root.sh bin/scaffold lab run "examples/experiments/$name.yaml" --plot docs/experiments || failed="$failed $name"
done
# Run by root in somebody's tree: what was written is theirs.
[ "$(id -u)" != 0 ] || chown -R --reference=go.mod bin docs/experiments
if [ -n "$failed" ]; then
	echo "experiments that failed:$failed" >&2
	exit 1
fi
