package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/tests/seed"
)

// A stage is one run of go test.
type stage struct {
	name     string
	dir      string // of the Go module, from the top of the tree
	env      []string
	args     []string // flags of go test
	packages []string
	before   [][]string // commands of the toolchain that must succeed first, in dir
}

// Tests of controllers and stores wait for disks and clocks: more of them go on at a time than there are processors, in
// each package, and of packages two more (internal/controller/store takes 5 s of processor in 49 s; with one more, two
// processors were idle in 12.5 % of perf's samples of a minute).
const sideBySide = 8

// quickly are flags of all stages. make vets all beforehand; tests need no tables for a debugger, which take half of a
// linker's time (1.6 of 3.2 s of processor for internal/tests/e2e).
var quickly = []string{"-vet=off", "-ldflags=-s -w", "-count=1", "-p=" + strconv.Itoa(runtime.NumCPU()+2), "-parallel=" + strconv.Itoa(sideBySide)}

const (
	unprivileged = "SCAFFOLD_ROOT_TESTS=0"
	seeded       = seed.Env + "=1" // the same commit gets the same answer; a long run draws anew
	quick        = "5m"            // what a package may take of what needs no root
)

// raced has goroutines that share something; races has all that is quick enough under the race detector, with rooms whose
// work one goroutine does. Each package costs a linker's run of some seconds, so the second list is a long run's.
var (
	raced = regexp.MustCompile(`/emu$|/internal/(api/member|boost/(agent|door|trunk)|controller/(controld(/(controllers|events|gate|lead|loop|saving|session))?|store)|host/(checks|gateway|guests|hostd|mobility|naming|underlay)|lab/(emud|processes)|openflow/(ofconn|switchd)|packet/capture|router/(agent|routerd))$`)
	races = regexp.MustCompile(`/(sid|wire|emu|emu/pcap)$|/internal/(api(/member)?|boost/(agent|door|trunk)|cli(/[a-z]+)?|trust|core/[a-z]+|controller/(controld(/[a-z]+)?|store)|host/[a-z]+|lab/(emud|processes|timeline)|openflow/(ofconn|switchd)|operate/obs|packet/capture|router/(agent|routerd))$`)
)

// onSwitches and onEmulated are tests end to end that do not run on these planes: the attackers of five tests sit beside a
// Linux router, upgrades and tunnels of hosts are of Linux routers' daemons. Nor do commands that outlive a leader run on
// switches: a host behind them hears of the next one once its switch has turned to that, which takes longer than a command
// waits.
const (
	onSwitches = "^Test(Attackers|ALocalUserIsRefused|AFloodOfRSYNs|CommandsOutlive|ALeaderThatIsStopped|KeysChange|TheLastInstance|WhatWorksWhile|ConnectionsBegun|APortThatIsTold|OneMachineIs|ARoutersHost|Upgrade|.*Tunnel|HostsOnIPv4|ANATThat)"
	onEmulated = "^Test(Attackers|ALocalUserIsRefused|AFloodOfRSYNs|ALeaderThatIsStopped|WhatWorksWhile|ConnectionsBegun|OneMachineIs|ARoutersHost|Upgrade|.*Tunnel|HostsOnIPv4|ANATThat)"
)

// heaviest are the packages that take longest, first: go test begins packages in this order, and what takes minutes must
// not begin when everything else has ended.
var heaviest = []string{"./internal/tests/e2e/...", "./internal/bpf/host", "./internal/tests/programs", "./internal/lab", "./internal/core/stripe", "./internal/boost/...", "./internal/tests/boost", "./internal/tests/badinput", "./internal/controller/..."}

// stagesOf are the stages of a kind, in their order; those of one entry run side by side, for they wait more than they
// compute.
func stagesOf(kind string) ([][]stage, error) {
	switch kind {
	case "check":
		env := []string{unprivileged, seeded}
		tests := []stage{{name: "tests that need no root", dir: ".", env: env, args: []string{"-timeout=" + quick}, packages: []string{"./..."}}}
		bench := stage{name: "bench", dir: "bench", env: env, args: []string{"-timeout=" + quick}, packages: []string{"./..."}}
		race, err := detector(kind)
		return append([][]stage{tests, append(outside(env), bench)}, race...), err
	case "all", "long":
		return everything(kind)
	}
	return nil, fmt.Errorf("no kind %q", kind)
}

// chosen leaves out the stages whose names do not have a part.
func chosen(stages [][]stage, part string) (left [][]stage) {
	for _, beside := range stages {
		if beside = slices.DeleteFunc(beside, func(s stage) bool { return !strings.Contains(s.name, part) }); len(beside) > 0 {
			left = append(left, beside)
		}
	}
	return left
}

func everything(kind string) (stages [][]stage, err error) {
	env, timeout := []string{"SCAFFOLD_ROOT_TESTS=1", seeded}, "-timeout=20m"
	if kind == "long" {
		env, timeout = []string{"SCAFFOLD_ROOT_TESTS=1", "SCAFFOLD_LONG_TESTS=1"}, "-timeout=2h"
	}
	args, err := asRoot(timeout)
	if err != nil {
		return nil, err
	}
	some := append(slices.Clone(args), leaveOut(onlyLong, alone))
	if kind == "long" {
		some = append(slices.Clone(args), leaveOut(alone))
	}
	stages = append(stages,
		[]stage{{name: "tests", dir: ".", env: env, args: some, packages: append(slices.Clone(heaviest), "./...")}},
		append(outside(env), stage{name: "bench", dir: "bench", env: env, args: some, packages: []string{"./..."}}))
	if kind == "long" {
		stages = append(stages, []stage{{name: "tests that need the machine alone", dir: ".", env: env, args: append(slices.Clone(args), only(alone)), packages: []string{"./internal/lab"}}})
		stages = append(stages, planes(env, args)...)
	}
	race, err := detector(kind) // last and alone: beside planes, stores with ten thousand services gave up
	return append(stages, race...), err
}

// leaveOut is the flag of tests that do not run, only that of those alone that do.
func leaveOut(lists ...[]string) string { return "-skip=" + names(lists...) }
func only(lists ...[]string) string     { return "-run=" + names(lists...) }

func names(lists ...[]string) string {
	return "^(" + strings.Join(slices.Concat(lists...), "|") + ")$"
}

// planes are the promises end to end on the data planes other than Linux routers, and unmodified programs there.
func planes(env, args []string) [][]stage {
	on := func(plane, what string, args ...string) stage {
		return stage{name: what + " on plane " + plane, dir: ".", env: append([]string{"SCAFFOLD_PLANE=" + plane}, env...), args: args, packages: []string{"./internal/tests/" + what}}
	}
	return [][]stage{
		{on("openflow", "e2e", append([]string{"-skip=" + onSwitches}, args...)...), on("emulated", "e2e", append([]string{"-skip=" + onEmulated}, args...)...)},
		{on("openflow", "programs", args...)},
	}
}

// outside is what is written against the public packages alone, in Go modules of its own: it fails when they change under it.
func outside(env []string) (beside []stage) {
	for _, dir := range []string{"examples/module", "examples/router"} {
		beside = append(beside, stage{name: dir + ", as an outside module", dir: dir, env: env, packages: []string{"./..."},
			before: [][]string{{"vet", "./..."}, {"build", "-o", os.DevNull, "."}}})
	}
	return beside
}

// detector is a stage with the race detector.
func detector(kind string) ([][]stage, error) {
	if _, err := exec.LookPath("gcc"); err != nil {
		if kind == "check" {
			fmt.Println("race detector: left out, it needs gcc")
			return nil, nil
		}
		return nil, errors.New("the race detector needs gcc: scripts/packages.sh test installs it")
	}
	out, err := exec.Command("go", "list", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages for the race detector: %w", err)
	}
	which := raced
	if kind == "long" {
		which = races
	}
	var packages []string
	for path := range strings.FieldsSeq(string(out)) {
		if which.MatchString(path) {
			packages = append(packages, path)
		}
	}
	if len(packages) == 0 {
		return nil, errors.New("no package for the race detector: does the pattern in stages.go still fit the tree?")
	}
	env, args := []string{unprivileged, seeded, "CGO_ENABLED=1"}, []string{"-race", "-timeout=15m"}
	if kind != "long" {
		args = append(args, leaveOut(onlyLong, byOneGoroutine))
	}
	return [][]stage{
		{{name: "race detector", dir: ".", env: env, args: args, packages: packages}},
		{{name: "race detector, bench", dir: "bench", env: env, args: args, packages: []string{"./agent", "./checked", "./hosts"}}},
	}, nil
}

// asRoot are flags by which tests run as root, where the caller is somebody else: builds are always his.
func asRoot(flags ...string) ([]string, error) {
	if os.Geteuid() == 0 {
		return flags, nil
	}
	script, err := filepath.Abs("scripts/as-root.sh")
	if err != nil {
		return nil, err
	}
	// Tests that call Go themselves must not leave root's files in the caller's caches. A quote counts at the beginning of a
	// word alone, where go test cuts this into words.
	return append(flags, "-exec='"+script+"' env 'GOFLAGS=-mod=readonly -trimpath' GOCACHE="+rootCache), nil
}

const rootCache = "/tmp/scaffold-root-cache"

// removeRootCache removes what tests that ran as root have compiled.
func removeRootCache() {
	if _, err := os.Stat(rootCache); err == nil && os.Geteuid() != 0 {
		_ = exec.Command("scripts/as-root.sh", "rm", "-rf", rootCache).Run() // sudo was there a moment ago
	}
}

// took is a time as people read it.
func took(d time.Duration) string { return d.Round(time.Second).String() }
