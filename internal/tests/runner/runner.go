package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// tries is how often a test that failed is run again.
	tries = 2
	// most is how many tests of a run are: when more fail, chance is no explanation.
	most = 5
)

// A runner goes through the stages of a run.
type runner struct {
	kind   string
	tool   string // the path of gotestsum
	dir    string // where the events of each stage are kept
	begun  time.Time
	lines  []string // what the report says of each stage
	skips  []string
	again  int // tests that were run again so far
	shaky  []unsteady
	wrong  []failure
	passed int
	failed int
	left   int // skipped
}

// An unsteady test failed in its stage, and passed alone.
type unsteady struct {
	of   *result
	fell int // of its tries alone
}

// A failure is a test, a package or a command that is broken.
type failure struct {
	what, why string
	said      []string
}

func newRunner(kind string) (*runner, error) {
	out, err := exec.Command("go", "tool", "-n", "gotestsum").Output()
	if err != nil {
		return nil, fmt.Errorf("build gotestsum, which go.mod pins: %w: go tool -n gotestsum says why", err)
	}
	dir, err := filepath.Abs(filepath.Join("bin", "tests"))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return nil, fmt.Errorf("the directory for what tests say: %w", err)
	}
	return &runner{kind: kind, tool: strings.TrimSpace(string(out)), dir: dir, begun: time.Now()}, nil
}

func (r *runner) broken() bool { return len(r.wrong) > 0 }

// stage runs stages side by side, then what failed in them again, alone.
func (r *runner) stage(ctx context.Context, beside []stage) {
	begun := time.Now()
	outcomes, errs := make([]*outcome, len(beside)), make([]error, len(beside))
	var all sync.WaitGroup
	for i, s := range beside {
		fmt.Printf("== %s\n", s.name)
		all.Go(func() { outcomes[i], errs[i] = r.test(ctx, s, "") })
	}
	all.Wait()
	for i, s := range beside {
		if ctx.Err() != nil {
			return
		}
		line := s.name + ": not run"
		if errs[i] != nil {
			r.wrong = append(r.wrong, failure{s.name, errs[i].Error(), nil})
		} else {
			r.judge(ctx, s, outcomes[i])
			line = r.count(s, outcomes[i])
		}
		line += ", " + took(time.Since(begun))
		r.lines = append(r.lines, line)
		fmt.Printf("== %s\n\n", line)
	}
}

// count adds what a stage came to.
func (r *runner) count(s stage, o *outcome) (line string) {
	r.passed, r.failed, r.left = r.passed+o.passed, r.failed+o.failed, r.left+o.skipped
	if !slices.Contains(s.env, unprivileged) { // else what needs root is left out
		r.skips = append(r.skips, o.skips...)
	}
	return fmt.Sprintf("%s: %d passed, %d failed, %d skipped", s.name, o.passed, o.failed, o.skipped)
}

// test runs the tests of a stage, all or one, and reads what they said.
func (r *runner) test(ctx context.Context, s stage, only string) (*outcome, error) {
	for _, argv := range s.before {
		cmd := command(ctx, s, "go", argv...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(argv, " "), err, out)
		}
	}
	file, err := os.CreateTemp(r.dir, strings.Map(plain, s.name)+"-*.json")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	argv := []string{"--format=pkgname", "--format-icons=text", "--format-hide-empty-pkg", "--hide-summary=all", "--jsonfile=" + file.Name(), "--"}
	argv = append(append(argv, quickly...), s.args...)
	if only != "" {
		argv = append(argv, "-run=^"+only+"$")
	}
	cmd := command(ctx, s, r.tool, append(argv, s.packages...)...)
	var said bytes.Buffer // of the toolchain: it is no event
	cmd.Stdout, cmd.Stderr = os.Stdout, io.MultiWriter(os.Stderr, &said)
	failed := cmd.Run()
	o := newOutcome()
	if err := o.read(file); err != nil {
		return nil, err
	}
	switch {
	case failed != nil && len(o.failures()) == 0 && len(o.crashes()) == 0:
		return nil, fmt.Errorf("gotestsum: %w, and no test failed\n%s", failed, &said)
	case o.passed+o.failed+o.skipped == 0 && len(o.crashes()) == 0:
		return nil, errors.New("no test ran")
	}
	return o, nil
}

// command is one in the directory and environment of a stage. It leads a process group: go test, when it is told to end,
// begins no further tests and leaves those that run to themselves, so all of them are told.
func command(ctx context.Context, s stage, path string, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, argv...)
	cmd.Dir = s.dir
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), s.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	return cmd
}

// plain has a stage's name make a file's.
func plain(c rune) rune {
	if c >= 'a' && c <= 'z' {
		return c
	}
	return '_'
}

// judge tells what failed by chance from what is broken.
func (r *runner) judge(ctx context.Context, s stage, o *outcome) {
	for _, path := range o.crashes() {
		r.wrong = append(r.wrong, failure{path, "the package failed beside its tests, or in the middle of them", o.lastWords(path)})
	}
	failed := o.failures()
	many := r.again+len(failed) > most
	for _, f := range failed {
		switch {
		case f.safety != "":
			r.fail(f, "of safety ("+f.safety+"): never tried again")
		case o.units[f.pkg].raced:
			r.fail(f, "a data race in its package: never tried again")
		case many:
			r.fail(f, fmt.Sprintf("not tried again: more than %d tests of this run failed", most))
		case r.broken() && r.kind != "long": // which goes on after a stage that failed, and tells all
			r.fail(f, "not tried again, for there is more")
		default:
			r.alone(ctx, s, f)
		}
	}
}

func (r *runner) fail(f *result, why string) {
	r.wrong = append(r.wrong, failure{f.String(), why, f.said})
}

// alone runs one test again. A crash or a race ends that, as it does anywhere.
func (r *runner) alone(ctx context.Context, s stage, f *result) {
	r.again++
	s.packages, s.before = []string{f.pkg}, nil
	last := f
	for i := range tries {
		fmt.Printf("== again, alone: %s\n", f)
		o, err := r.test(ctx, s, f.test)
		if ctx.Err() != nil {
			return
		}
		again := o.of(f.name)
		switch {
		case err != nil || again == nil || len(o.crashes()) > 0 || o.units[f.pkg].raced:
			r.fail(last, "crashed, raced or did not run when it was tried again, alone")
			return
		case again.passed && !again.failed:
			r.shaky = append(r.shaky, unsteady{f, i})
			return
		}
		last = again
	}
	r.fail(last, fmt.Sprintf("failed again, alone, %d times", tries))
}

// of is the result of a test, nil where it did not run.
func (o *outcome) of(n name) *result {
	if o == nil {
		return nil
	}
	return o.tests[n]
}
