#!/bin/bash
# Vets all packages: those of the module, and those of the benchmarks, a module of their own.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/go.sh vet -tags kernels ./... # with the tests that are run on other kernels alone
scripts/go.sh -C bench vet ./...
