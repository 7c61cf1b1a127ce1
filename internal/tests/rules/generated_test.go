package rules

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestGeneratedFilesAreCommitted lets a machine without clang and protoc build: every package that
// generates has its products in git.
func TestGeneratedFilesAreCommitted(t *testing.T) {
	out, err := exec.Command("git", "-c", "safe.directory=*", "-C", root(t), "ls-files").Output()
	if err != nil {
		nstest.Lacks(t, "no git here: this tree is an archive")
	}
	tracked := strings.Fields(string(out))
	for _, name := range tracked {
		if !strings.HasSuffix(name, ".o") && compiled(filepath.Join(root(t), name)) {
			t.Errorf("%s: a compiled program is in git, which no build makes anew", name)
		}
	}
	files(t, []string{".c", ".proto"}, func(name, _ string) {
		dir := filepath.Dir(name)
		var want []string
		switch {
		case strings.HasSuffix(name, ".bpf.c"):
			want = []string{"_bpfel.go", "_bpfel.o"}
		case strings.HasSuffix(name, ".proto"):
			want = []string{".pb.go"}
		}
		for _, suffix := range want {
			if !product(tracked, dir, suffix) {
				t.Errorf("%s: no committed *%s beside it: run make generate and commit", name, suffix)
			}
		}
	})
}

// compiled reports whether the file is one that the kernel runs, by its first bytes.
func compiled(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	magic := make([]byte, 4)
	_, err = io.ReadFull(f, magic)
	return err == nil && string(magic) == "\x7fELF"
}

func product(tracked []string, dir, suffix string) bool {
	for _, f := range tracked {
		if filepath.Dir(f) == dir && strings.HasSuffix(f, suffix) {
			return true
		}
	}
	return false
}

// dual is what lets the kernel load a program and a user of the header choose: SPDX's newer and older
// spelling of the same.
var dual = regexp.MustCompile(`SPDX-License-Identifier: \(?GPL-2\.0(-only)? OR BSD-2-Clause\)?`)

func TestSourcesSayTheirLicense(t *testing.T) {
	files(t, []string{".c", ".h"}, func(name, text string) {
		if !dual.MatchString(text[:min(len(text), 200)]) {
			t.Errorf("%s: should begin with /* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */", name)
		}
	})
	for _, name := range []string{"LICENSE", "LICENSES/GPL-2.0-only.txt", "LICENSES/BSD-2-Clause.txt"} {
		if info, err := os.Stat(filepath.Join(root(t), name)); err != nil || info.Size() < 500 {
			t.Errorf("%s: missing, or not the whole text", name)
		}
	}
}
