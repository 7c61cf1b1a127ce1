package nstest

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/linux/cgroups"
)

// childEnv marks the process that runs the tests; its parent only waits for it and cleans up.
const childEnv = "SCAFFOLD_NSTEST_CHILD"

// ready is the value of childEnv once the surroundings are made: a test that starts its own binary
// again shares them.
const ready = "ready"

// BPFFS is where Main mounts the fresh bpffs: the product's own default place.
const BPFFS = "/run/scaffold/bpf"

// Main runs the tests in a private mount namespace and a cgroup of their own, and exits. Without root
// it runs them as they are. Call it from TestMain.
func Main(m *testing.M) { MainAround(m, func(run func() int) int { return run() }) }

// MainAround is Main for a package whose tests share something large, such as a lab: around is called
// in the private place and calls run, which runs the tests and returns the exit code.
func MainAround(m *testing.M, around func(run func() int) int) {
	switch {
	case os.Geteuid() != 0:
		os.Exit(around(m.Run))
	case os.Getenv(childEnv) == "":
		os.Exit(supervise())
	case os.Getenv(childEnv) == ready: // started by a test, in its surroundings
		os.Exit(m.Run())
	}
	if err := privateRun(); err != nil {
		fmt.Fprintln(os.Stderr, "nstest:", err)
		os.Exit(1)
	}
	os.Setenv(childEnv, ready)
	os.Exit(around(m.Run))
}

// runEnv tells the tests, and the programs that they start, who supervises them.
const runEnv = "SCAFFOLD_TEST_RUN"

// LabName is the name for a lab of this test binary: no other process that runs has the same, and what
// a crash leaves running of it, or of one whose name begins so, is killed.
func LabName() string { return LabNamed("test") }

// LabNamed is one for a lab of its own, which may have no more than 12 bytes: a lab's name has at most 20.
func LabNamed(name string) string {
	id := os.Getenv(runEnv)
	if id == "" { // without root nobody supervises, and no lab runs
		id = strconv.Itoa(os.Getppid())
	}
	return name + "_" + id
}

// supervise starts this binary again, passes signals on and kills what the tests left running.
func supervise() int {
	group, err := newGroup("scaffold-test-" + strconv.Itoa(os.Getpid()))
	if err != nil {
		fmt.Fprintln(os.Stderr, "nstest:", err)
		return 1
	}
	defer group.remove()
	id := strconv.Itoa(os.Getpid())
	defer removeLabs(filepath.Dir(group.path), id)
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), childEnv+"=1", runEnv+"="+id)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Unshareflags: syscall.CLONE_NEWNS, // Go makes the mounts private as well
		Pdeathsig:    syscall.SIGKILL,
		UseCgroupFD:  true,
		CgroupFD:     int(group.dir.Fd()),
	}
	return group.run(cmd)
}

// removeLabs kills what is left of a run's labs: those of LabNamed, and those whose names begin with LabName, with more
// digits than which it is another run's.
func removeLabs(root, id string) {
	for _, pattern := range []string{"scaffold-lab-*_" + id, "scaffold-lab-test_" + id + "[^0-9]*"} {
		found, _ := filepath.Glob(filepath.Join(root, pattern)) // the patterns are well-formed
		for _, p := range found {
			removeCgroup(p)
		}
	}
}

// A group is the cgroup that everything started by one test binary stays in.
type group struct {
	path string
	dir  *os.File
}

func newGroup(name string) (*group, error) {
	root, err := cgroups.Mount()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(root, name)
	removeCgroup(path) // of a run that was killed: its number is ours now
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil, err
	}
	dir, err := os.Open(path)
	return &group{path, dir}, err
}

func (g *group) run(cmd *exec.Cmd) int {
	sig := make(chan os.Signal, 8)
	signal.Notify(sig, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	// A go test that was killed has left a closed pipe: to write into it must not end us before we have
	// cleaned up. Ignored, the signal would be ignored by all that the tests start as well.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "nstest: start the tests in a private mount namespace:", err)
		return 1
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case s := <-sig:
			cmd.Process.Signal(s)
		case <-done:
			if code := cmd.ProcessState.ExitCode(); code >= 0 {
				return code
			}
			fmt.Fprintln(os.Stderr, "nstest: the tests ended by", cmd.ProcessState)
			return 2
		}
	}
}

// remove kills what is left and removes the cgroup with those that tests made below it.
func (g *group) remove() {
	g.dir.Close()
	removeCgroup(g.path)
}

// privateRun puts a tmpfs over /run, so that named namespaces and state files die with this process,
// and mounts a bpffs in it.
func privateRun() error {
	if err := unix.Mount("nstest", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount a private /run: %w", err)
	}
	if err := os.MkdirAll(BPFFS, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("nstest", BPFFS, "bpf", 0, "mode=700"); err != nil {
		return fmt.Errorf("mount bpffs on %s: %w", BPFFS, err)
	}
	return nil
}
