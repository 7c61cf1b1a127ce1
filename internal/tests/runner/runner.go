package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
	out, err := exec.Command("go", "tool", "-n", "gotestsum").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("build gotestsum, which go.mod pins: %w: %s", err, out)
	}
	dir, err := filepath.Abs(filepath.Join("bin", "tests"))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return nil, fmt.Errorf("the directory for what tests say: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n") // before the path come downloads
	return &runner{kind: kind, tool: lines[len(lines)-1], dir: dir, begun: time.Now()}, nil
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
		if errs[i] != nil {
			r.wrong = append(r.wrong, failure{s.name, errs[i].Error(), nil})
			continue
		}
		r.judge(ctx, s, outcomes[i])
		o := outcomes[i]
		r.passed, r.failed, r.left = r.passed+o.passed, r.failed+o.failed, r.left+o.skipped
		if !strings.Contains(strings.Join(s.env, " "), "SCAFFOLD_ROOT_TESTS=0") {
			r.skips = append(r.skips, o.skips...)
		}
		r.lines = append(r.lines, fmt.Sprintf("%s: %d passed, %d failed, %d skipped", s.name, o.passed, o.failed, o.skipped))
	}
	if n := len(r.lines); n > 0 {
		r.lines[n-1] += ", " + took(time.Since(begun))
		fmt.Printf("== %s\n\n", r.lines[n-1])
	}
}

// test runs the tests of a stage, all or one, and reads what they said.
func (r *runner) test(ctx context.Context, s stage, only string) (*outcome, error) {
	for _, argv := range s.before {
		cmd := exec.CommandContext(ctx, "go", argv...)
		cmd.Dir = s.dir
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
	cmd := exec.CommandContext(ctx, r.tool, append(argv, s.packages...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, os.Stdout, os.Stderr
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), s.env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its go test, which ends its tests
	cmd.WaitDelay = time.Minute
	failed := cmd.Run()
	o := newOutcome()
	if err := o.read(file); err != nil {
		return nil, err
	}
	var exit *exec.ExitError
	switch {
	case failed == nil:
	case !errors.As(failed, &exit):
		return nil, failed
	case len(o.failures()) == 0 && len(o.crashes()) == 0:
		return nil, fmt.Errorf("gotestsum: %w, and no test failed", failed)
	}
	return o, nil
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
	for _, f := range failed {
		switch {
		case f.raced:
			r.fail(f, "a data race")
		case f.safety != "":
			r.fail(f, "of safety ("+f.safety+"): never tried again")
		case r.broken():
			r.fail(f, "not tried again, for there is more")
		case r.again+len(failed) > most:
			r.fail(f, fmt.Sprintf("not tried again: more than %d tests of this run failed", most))
		default:
			r.alone(ctx, s, f)
		}
	}
}

func (r *runner) fail(f *result, why string) {
	r.wrong = append(r.wrong, failure{f.String(), why, f.said})
}

// alone runs one test again.
func (r *runner) alone(ctx context.Context, s stage, f *result) {
	r.again++
	s.packages, s.before = []string{f.pkg}, nil
	for i := range tries {
		fmt.Printf("== again, alone: %s\n", f)
		o, err := r.test(ctx, s, f.test)
		if ctx.Err() != nil {
			return
		}
		if again := o.of(f.name); err == nil && again != nil && !again.failed && len(o.crashes()) == 0 {
			r.shaky = append(r.shaky, unsteady{f, i})
			return
		}
	}
	r.fail(f, fmt.Sprintf("failed again, alone, %d times", tries))
}

// of is the result of a test, nil where it did not run.
func (o *outcome) of(n name) *result {
	if o == nil {
		return nil
	}
	return o.tests[n]
}
