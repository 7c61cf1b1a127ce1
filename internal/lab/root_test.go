package lab

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// nobodyEnv makes the test binary ask for a lab without the rights for it.
const nobodyEnv = "SCAFFOLD_LAB_NOBODY"

func TestNobodyHelper(t *testing.T) {
	if os.Getenv(nobodyEnv) == "" {
		t.Skip("only as a child of TestWithoutRootNothingIsTouched")
	}
	f, err := file.Parse("small.yaml", []byte(strings.Replace(small, "NAME", "nobody", 1)))
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{Dir: os.Getenv(nobodyEnv)}
	_, up := Up(context.Background(), f, opt)
	_, all := DownAll(context.Background(), opt)
	_, open := Open("", opt)
	for what, err := range map[string]error{"up": up, "down": Down(context.Background(), "", opt), "down --all": all, "open": open} {
		if !errors.Is(err, ErrRoot) {
			t.Errorf("%s without root: %v", what, err)
		}
	}
}

func TestWithoutRootNothingIsTouched(t *testing.T) {
	nstest.Root(t)
	before := machine(t)
	dir := t.TempDir()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestNobodyHelper$")
	cmd.Env = append(os.Environ(), nobodyEnv+"="+dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
