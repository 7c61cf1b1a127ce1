package cgroups_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/linux/cgroups"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

func TestAKilledGroupIsGoneWithAllThatItHeld(t *testing.T) {
	safety.Test(t, safety.Trace)
	nstest.Root(t)
	root, err := cgroups.Mount()
	if err != nil {
		t.Fatal(err)
	}
	g := cgroups.Group(filepath.Join(root, fmt.Sprintf("scaffold-cgroups-test-%d", os.Getpid())))
	t.Cleanup(func() { g.Remove(context.Background()) }) // the context of a test is over by then
	below := g.Child("below")
	if err := below.Make(); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(string(below))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if pids := g.PIDs(); len(pids) != 1 || pids[0] != cmd.Process.Pid {
		t.Errorf("the group holds %v, want %d", pids, cmd.Process.Pid)
	}
	if err := g.RemoveEmpty(); err == nil {
		t.Error("a group with a process was removed")
	}
	if err := g.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || err.Error() != "signal: killed" {
		t.Errorf("sleep ended with %v", err)
	}
	if _, err := os.Stat(string(g)); err == nil {
		t.Errorf("%s is still there", g)
	}
	if err := g.Remove(t.Context()); err != nil {
		t.Errorf("removed twice: %v", err)
	}
}
