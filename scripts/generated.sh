#!/bin/bash
# Generates the BPF objects and the API from their sources, and fails where what is committed differs.
# Needs clang-19, llvm-strip-19, libbpf's headers, protoc and its own messages: scripts/packages.sh generate.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

sums() { find internal clients -name '*_bpfe[lb].*' -o -name '*.pb.go' -o -name '*.connect.go' -o -name schema.js -o -path '*/_schema.py' | sort | xargs sha256sum; }

before=$(sums)
scripts/go.sh generate ./...
if ! diff <(echo "$before") <(sums) >&2; then
	echo "what is generated differs from what was here: look at git diff, and commit the new files" >&2
	exit 1
fi
echo "generated files: as their sources say"
