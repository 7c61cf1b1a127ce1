package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A suite is one program to run on each kernel.
type suite struct {
	Name string   // its package, or what it is
	Dir  string   // where it runs
	Argv []string // what it runs
}

// doctorSuite is the first: what the kernel has, by the product's own probes.
const doctorSuite = "doctor"

// selected are the packages that ask something of the kernel, the quick ones first: where the time is short, most of
// them are run. Of the promises end to end, and of the daemons, those tests that need no program but our own. Those are
// for a processor: where it is emulated, a daemon starts in six seconds and its network takes it for dead.
var selected = []struct {
	pkg, run string
	quick    bool // only on a processor, unless it is asked for
}{
	{pkg: "internal/bpf/features"},
	{pkg: "internal/tests/nstest"},
	{pkg: "internal/bpf/repair"},
	{pkg: "internal/bpf/sockets"},
	{pkg: "internal/bpf/router"},
	{pkg: "internal/bpf/divert"},
	{pkg: "internal/boost/ends"},
	{pkg: "internal/bpf/kick"},
	{pkg: "internal/bpf/host"},
	{pkg: "internal/router/routerd"},
	{pkg: "internal/host/checks"},
	{pkg: "internal/host/guests"},
	{pkg: "internal/host/hostd"},
	{pkg: "internal/tests/e2e", run: "^Test(Connect|Daemons|Listeners|Weights|Process|Refus|Move|Load)", quick: true},
}

// build builds the tests and the product, for all kernels.
func build(ctx context.Context, work, only, tests string) (suites []suite, err error) {
	top, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(top, "go.mod")); err != nil {
		return nil, fmt.Errorf("%w\nhint: run it at the top of the tree, by make test-kernels", err)
	}
	product := filepath.Join(work, "scaffold")
	if err := compile(ctx, "build", "-o", product, "./cmd/scaffold"); err != nil {
		return nil, err
	}
	suites = []suite{{doctorSuite, top, []string{product, "doctor", "-o", "json"}}}
	for _, s := range selected {
		if !strings.Contains(s.pkg, only) || s.quick && only == "" && !kvm() {
			continue
		}
		binary := filepath.Join(work, strings.ReplaceAll(s.pkg, "/", "-")+".test")
		if err := compile(ctx, "test", "-tags", "kernels", "-c", "-o", binary, "./"+s.pkg); err != nil {
			return nil, err
		}
		argv := []string{binary, "-test.v"}
		if tests != "" {
			s.run = tests
		}
		if s.run != "" {
			argv = append(argv, "-test.run="+s.run)
		}
		suites = append(suites, suite{s.pkg, filepath.Join(top, s.pkg), argv})
	}
	return suites, nil
}

func compile(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "scripts/go.sh", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// file is where the suite's output goes.
func (s suite) file(dir string) string {
	return filepath.Join(dir, strings.ReplaceAll(s.Name, "/", "-")+".out")
}

// run runs the suite in the guest, for so long at most, with tests that wait so many times longer than others. Its exit
// code is the last line of its output.
func (s suite) run(dir string, limit time.Duration, patience int) int {
	f, err := os.Create(s.file(dir))
	if err != nil {
		fmt.Println("kernels:", err)
		return -1
	}
	defer f.Close()
	argv := s.Argv
	if s.Name != doctorSuite {
		argv = append(argv[:len(argv):len(argv)], "-test.timeout="+limit.String())
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Dir, f, f
	if s.Name == doctorSuite {
		cmd.Stderr = nil
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/root", "SCAFFOLD_ROOT_TESTS=1", "LC_ALL=C.UTF-8",
		fmt.Sprintf("SCAFFOLD_TEST_PATIENCE=%d", patience)}
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		fmt.Fprintln(f, err)
	}
	code := -1
	if cmd.ProcessState != nil {
		code = cmd.ProcessState.ExitCode()
	}
	fmt.Fprintf(f, "%s%d\n", exitLine, code)
	return code
}
