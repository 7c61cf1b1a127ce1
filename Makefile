# Needs Go (go.mod says which) and, for demo and test, root or sudo on Debian or alike. The BPF
# objects are committed: clang is needed by `make generate` only.

# sudo, cron and `env -i` leave little in PATH; what is not found there is looked for in scripts/go.sh.
export PATH := $(PATH):/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export GO

.PHONY: build deb test-install check lint test test-long steady test-kernels demo bench experiments model model-long fuzz generate check-generated clean help

build: ## build bin/scaffold, and bin/scaffold-bench for scaffold bench
	@scripts/build.sh

deb: ## build bin/scaffold_VERSION_ARCH.deb: program, units, manual, completion
	@echo "builds the program and packs it: about a minute" >&2
	@scripts/deb.sh

test-install: build ## install on three machines that boot systemd here, upgrade and purge: docs/install.md word for word (not in CI: minutes)
	@scripts/as-root.sh scripts/test-install.sh

check: build ## what is quick and needs no root: format, vet, tests, race detector
	@scripts/format.sh
	@scripts/vet.sh
	@scripts/test.sh check

lint: ## golangci-lint as .golangci.yaml has it, on the program and bench; builds the pinned version once
	@scripts/lint.sh

test: ## each promise once, on a fresh machine: installs packages, builds, tests as root (docs/testing.md)
	@scripts/as-root.sh scripts/packages.sh test
	@scripts/build.sh
	@scripts/format.sh
	@scripts/vet.sh
	@scripts/test.sh all $(STAGE)

test-long: ## all that make test leaves out, and that again: each promise on each data plane, all programs, soaks, models, kernels; hours
	@scripts/as-root.sh scripts/packages.sh test
	@scripts/build.sh
	@scripts/format.sh
	@scripts/vet.sh
	@scripts/test.sh long $(STAGE)
	@$(if $(STAGE),,$(MAKE) model-long && $(MAKE) test-kernels)

RUNS ?= 50
steady: ## run one test many times beside busy processors: make steady TEST=TestName RUNS=50 (PACKAGE=./dir where two have it, QUIET=1 without noise, RACE=1 with the race detector, AUTOGROUP=1 with sched_autogroup_enabled as it is)
	@scripts/test.sh steady -test "$(TEST)" -runs $(RUNS) $(if $(PACKAGE),-package $(PACKAGE)) $(if $(QUIET),-noise=false) $(if $(RACE),-race) $(if $(AUTOGROUP),-autogroup)

demo: ## show what Scaffold does, with nginx, curl, wget and ab (DEMO=boost: over a long path; KEEP=1 leaves it up; NET=openflow or linux: what its routers are)
	@scripts/as-root.sh scripts/packages.sh demo $(if $(filter boost,$(DEMO)),boost)
	@scripts/build.sh
	@scripts/as-root.sh bin/scaffold demo $(DEMO) $(if $(KEEP),--keep) $(if $(NET),--net $(NET))

BENCH ?= path switch churn cut split returns told hogs table kick link scale move failover rehome crowd flows flood tunnel gateway reactive boost emu
bench: build ## measure this machine (BENCH=path names one of the benchmarks)
	@scripts/as-root.sh scripts/packages.sh bench || echo "bench: what needs them is left out"
	@for name in $(BENCH); do scripts/as-root.sh bin/scaffold bench $$name || exit; done

EXPERIMENT ?= tftp_failover tftp_move web_reset web_failover web_load memcached
test-kernels: ## boot other kernels under qemu and run the kernel's tests there: 10 minutes with KVM, 15 to 30 for each without (KERNELS="6.1 6.12")
	@scripts/as-root.sh scripts/packages.sh kernels
	@scripts/as-root.sh scripts/kernels.sh $(KERNELS)

experiments: ## run what docs/experiments shows, in 5 minutes (EXPERIMENT=memcached runs one; sos_loss and others are of docs/experiments/sos.md)
	@scripts/as-root.sh scripts/packages.sh experiments
	@scripts/build.sh
	@scripts/experiments.sh $(EXPERIMENT)

model: ## check the models of the protocol with SPIN, in a minute or two
	@scripts/as-root.sh scripts/packages.sh model
	@model/check.sh

model-long: ## check them with the large runs too, in some minutes; model/README.md has the last results
	@scripts/as-root.sh scripts/packages.sh model
	@model/check.sh long

FUZZTIME ?= 1m
fuzz: ## run every fuzz target for FUZZTIME each, 1m by default, and keep what it finds (FUZZ=wire names some, PARALLEL=1 leaves processors to others, AT_A_TIME=4 runs four side by side)
	@scripts/fuzz.sh $(FUZZTIME) $(FUZZ)

generate: ## generate BPF objects and the API anew (clang-19, llvm-19, libbpf-dev, protobuf-compiler, libprotobuf-dev)
	@scripts/as-root.sh scripts/packages.sh generate
	@scripts/go.sh generate ./...

check-generated: ## generate, and fail where what is committed differs
	@scripts/as-root.sh scripts/packages.sh generate
	@scripts/generated.sh

clean: ## remove what was built
	@rm -rf bin

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' Makefile | expand -t 20
