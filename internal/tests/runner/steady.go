package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// A steady runs one test many times, beside noise.
type steady struct {
	test, pkg string
	runs      int
	noise     bool
	autogroup bool // sessions stay groups of the scheduler, where they are
	race      bool
}

func (s steady) run(ctx context.Context) error {
	if s.pkg == "" {
		pkg, err := find(".", s.test)
		if err != nil {
			return err
		}
		s.pkg = pkg
	}
	dir, err := os.MkdirTemp("", "scaffold-steady-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "tests")
	st := stage{dir: s.pkg}
	argv := []string{"test", "-c", "-vet=off", "-o", binary}
	if s.race {
		st.env, argv = []string{"CGO_ENABLED=1"}, append(argv, "-race")
	}
	if out, err := command(ctx, st, "go", append(argv, ".")...).CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests of %s: %w\n%s", s.pkg, err, out)
	}
	path := []string{binary}
	if os.Geteuid() != 0 {
		script, err := filepath.Abs("scripts/as-root.sh")
		if err != nil {
			return err
		}
		path = []string{script, binary}
	}
	if s.noise {
		defer busy()()
	}
	return s.repeat(ctx, path)
}

// repeat runs the test's binary, and stops at a try that was interrupted.
func (s steady) repeat(ctx context.Context, argv []string) error {
	argv = append(argv, "-test.run=^"+s.test+"$", "-test.v", "-test.timeout=10m")
	failed, last, begun := 0, "", time.Now()
	for i := range s.runs {
		out, err := command(ctx, stage{dir: s.pkg, env: []string{"SCAFFOLD_ROOT_TESTS=1"}}, argv[0], argv[1:]...).CombinedOutput()
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted: %d of %d runs failed", failed, i)
		}
		switch said := string(out); {
		case err != nil:
			failed, last = failed+1, said
			fmt.Printf("run %d failed: %s\n", i+1, why(strings.Split(said, "\n")))
		case !strings.Contains(said, "--- PASS: "+s.test+" "):
			return fmt.Errorf("%s did not run: %s", s.test, why(strings.Split(said, "\n")))
		}
	}
	if failed > 0 {
		fmt.Printf("the last one that failed said:\n")
		repeat(os.Stdout, strings.Split(strings.TrimSpace(last), "\n"), end)
	}
	fmt.Printf("%s: %d of %d runs failed, in %s\n", s.test, failed, s.runs, took(time.Since(begun)))
	if failed > 0 {
		return errors.New("the test is not steady")
	}
	return nil
}

// busy keeps each processor at work until it is told to stop, in processes of their own: a loop in this one would be
// of the runner's scheduler.
func busy() (stop func()) {
	var all []*exec.Cmd
	for range runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		if cmd.Start() == nil {
			all = append(all, cmd)
		}
	}
	return func() {
		for _, cmd := range all {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
}

// find is the package below dir whose tests have one of the name.
func find(dir, test string) (pkg string, err error) {
	head := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(test) + `\(`)
	var found []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		if head.Match(b) {
			found = append(found, "./"+filepath.Dir(path))
		}
		return err
	})
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", fmt.Errorf("no package has a test %s", test)
	case len(found) > 1:
		return "", fmt.Errorf("%s is a test of %s: say which by -package", test, strings.Join(found, " and "))
	}
	return found[0], nil
}
