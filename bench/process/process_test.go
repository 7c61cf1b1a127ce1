package process

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestAProcessesTimesAreReadBehindItsName(t *testing.T) {
	const stat = "4711 (a b) S 1 4711 4711 0 -1 4194304 1000 0 0 0 150 50 7 3 20 0 1 0 12345 0 0"
	own, ended := times(stat)
	if own != 2*time.Second || ended != 100*time.Millisecond {
		t.Errorf("%v, %v", own, ended)
	}
	if own, ended = times(stat[:10]); own != 0 || ended != 0 {
		t.Errorf("of half a line: %v, %v", own, ended)
	}
}

// What a relay's children have had is the relay's, while they are there and after.
func TestTimesOfChildrenAreAProcesses(t *testing.T) {
	cmd := exec.Command("sh", "-c", `(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done); echo done; read x`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if own, all := CPU(cmd.Process.Pid), TreeCPU(cmd.Process.Pid); all <= own {
		t.Errorf("by itself %v, with a child that was busy and has ended %v", own, all)
	}
	found := false
	for _, pid := range Children(os.Getpid()) {
		found = found || pid == cmd.Process.Pid
	}
	if !found {
		t.Errorf("%d is not among the children %v", cmd.Process.Pid, Children(os.Getpid()))
	}
}
