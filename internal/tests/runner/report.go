package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// end is how many lines of what a failed test said are repeated, few how many where many failed: the last 200 lines of
	// a run are to say what happened.
	end, few = 40, 12
	// ownLines is how many of a test's own lines stand before them.
	ownLines = 5
)

var errFailed = errors.New("tests failed: the lines above say which and why")

// report says at the end what happened, the worst last.
func (r *runner) report(to io.Writer) error {
	removeRootCache()
	giveBack(r.dir)
	lines := end
	if len(r.wrong) > 3 {
		lines = few
	}
	for _, line := range r.lines {
		fmt.Fprintf(to, "stage  %s\n", line)
	}
	for _, skip := range r.skips {
		fmt.Fprintf(to, "skipped: %s\n", skip)
	}
	for _, u := range r.shaky {
		fmt.Fprintf(to, "unsteady: %s, %s\n", u.of, why(u.of.said))
		fmt.Fprintf(to, "  it passed alone at try %d; make steady TEST=%s runs it many times; what it said:\n", u.fell+1, u.of.test)
		repeat(to, u.of.said, few)
	}
	for _, f := range r.wrong {
		fmt.Fprintf(to, "FAILED: %s: %s\n", f.what, f.why)
		repeat(to, f.said, lines)
	}
	for _, u := range r.shaky {
		fmt.Fprintf(to, "unsteady: %s\n", u.of)
	}
	for _, f := range r.wrong {
		fmt.Fprintf(to, "FAILED: %s\n", f.what)
	}
	fmt.Fprintf(to, "%s: %d unsteady, %d broken, in %s; all that was said: %s\n", r.kind, len(r.shaky), len(r.wrong), took(time.Since(r.begun)), r.dir)
	fmt.Fprintf(to, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.left)
	if r.broken() {
		return errFailed
	}
	return nil
}

// giveBack gives what root has written to whose tree this is: he runs the tests next.
func giveBack(dir string) {
	owner, err := os.Stat("go.mod")
	if err != nil || os.Geteuid() != 0 {
		return
	}
	of := owner.Sys().(*syscall.Stat_t)
	_ = filepath.WalkDir(filepath.Dir(dir), func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, int(of.Uid), int(of.Gid))
		}
		return err
	})
}

// repeat says the end of what a test said, and before it what the test said for itself, which logs may have pushed out.
func repeat(to io.Writer, said []string, most int) {
	lines := tail(said, most)
	for i, line := range own(said) {
		if i == ownLines {
			break
		}
		fmt.Fprintf(to, "  > %s\n", line)
	}
	for _, line := range lines {
		fmt.Fprintf(to, "    %s\n", line)
	}
}

// tail is the end of what a test said, without what says only that it ran.
func tail(said []string, most int) (lines []string) {
	for _, line := range said {
		if !strings.HasPrefix(line, "=== ") {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-most):]
}

// own are the first lines of what a test says for itself, each with the place in its file. Logs that it repeats are not.
func own(said []string) (lines []string) {
	for _, line := range said {
		if text := strings.TrimSpace(line); strings.Contains(text, "_test.go:") && !strings.HasSuffix(text, ":") {
			lines = append(lines, text)
		}
	}
	return lines
}

// why is the last of them: before an error a test may log much.
func why(said []string) string {
	if lines := own(said); len(lines) > 0 {
		return lines[len(lines)-1]
	}
	for _, line := range said {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "=== ") && !strings.HasPrefix(text, "--- ") {
			return text
		}
	}
	return "it said nothing"
}
