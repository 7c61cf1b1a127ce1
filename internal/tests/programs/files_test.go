package programs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// place makes a directory that every user may reach: some servers drop root.
func place(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "scaffold-programs-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// put writes a file of a test and returns its path.
func put(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// random is n bytes that no one guesses and that are the same in each run.
func random(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{'s', 'c', 'a', 'f'}).Read(b)
	return b
}

// letters is n random letters, for programs that carry text.
func letters(n int) string {
	b := random(n)
	for i := range b {
		b[i] = 'a' + b[i]%26
	}
	return string(b)
}

// same compares what arrived with what was sent.
func same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	t.Fatalf("%s: %d bytes arrived, %d were sent, the first difference is at %d", what, len(got), len(want), difference(got, want))
}

func difference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// sameFile compares a file with what was sent.
func sameFile(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	same(t, path, got, want)
}

// local runs a program outside the lab: what makes keys and files.
func local(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}

// tail is the end of a text, for messages.
func tail(s string) string {
	if lines := strings.Split(s, "\n"); len(lines) > 40 {
		return "...\n" + strings.Join(lines[len(lines)-40:], "\n")
	}
	return s
}

// logs is the end of each *.log file of a directory.
func logs(dir string) string {
	var out strings.Builder
	paths, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, p := range paths {
		b, _ := os.ReadFile(p)
		fmt.Fprintf(&out, "--- %s\n%s", p, tail(string(b)))
	}
	return out.String()
}
