package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "scaffold.dev/scaffold"

// A listed package, as go list tells.
type listed struct {
	Dir, ImportPath, Name, Doc string
	GoFiles, Imports           []string
	Error                      *struct{ Err string }
}

// name is the import path inside the module; "." for its root.
func (p listed) name() string {
	inside, _ := relative(p.ImportPath)
	return inside
}

func relative(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// root is the top of the tree.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var list = sync.OnceValues(func() (all []byte, err error) {
	for _, dir := range []string{"../../..", "../../../bench"} {
		cmd := exec.Command("go", "list", "-e", "-buildvcs=false", "-json=Dir,ImportPath,Name,Doc,GoFiles,Imports,Error", "./...")
		cmd.Dir = dir
		out, err := cmd.Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = errors.New(string(exit.Stderr))
		}
		if err != nil {
			return nil, err
		}
		all = append(all, out...)
	}
	return all, nil
})

// tree lists every package of the module, and of the one of the benchmarks, whose path is below it. Tests run beside the toolchain that built them.
func tree(t *testing.T) []listed {
	t.Helper()
	out, err := list()
	if err != nil {
		t.Fatalf("go list ./...: %v", err)
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Error != nil {
			t.Errorf("%s: %s", p.ImportPath, p.Error.Err)
		}
		all = append(all, p)
	}
}
