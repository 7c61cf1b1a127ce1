package setup

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// A daemon is started, restarted or left alone by one command, whose end is the daemon's readiness.
func TestBeginLeavesTheWaitingToSystemd(t *testing.T) {
	for _, c := range []struct {
		role          Role
		runs, changed bool
		fails         bool
		want          string
	}{
		{role: Host, changed: true, want: "start scaffold-hostd.service"},
		{role: Host, runs: true, changed: true, want: "restart scaffold-hostd.service"},
		{role: Host, runs: true},
		{role: Router, fails: true, want: "start scaffold-routerd.service"},
		{role: Gateway, runs: true, changed: true, want: "kill --kill-who=main --signal=USR2 scaffold-gateway.service"},
	} {
		runs, ran := c.runs, []string(nil)
		m := &Machine{Live: true, Run: func(args ...string) error {
			if slices.Contains(args, "is-active") {
				if !runs {
					return errors.New("inactive")
				}
				return nil
			}
			ran = append(ran, strings.Join(args[1:], " "))
			if c.fails {
				return errors.New("its control process exited")
			}
			runs = true
			return nil
		}}
		err := m.Begin(c.role, c.changed)
		if got := strings.Join(ran, ", "); got != c.want || (err != nil) != c.fails {
			t.Errorf("%+v: ran %q, error %v", c, got, err)
		}
	}
}

// A unit whose condition does not hold is started without an error, and does not run.
func TestBeginSaysThatADaemonDoesNotRun(t *testing.T) {
	m := &Machine{Live: true, Run: func(args ...string) error {
		if slices.Contains(args, "is-active") {
			return errors.New("inactive")
		}
		return nil
	}}
	if err := m.Begin(Host, true); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Errorf("Begin of a unit that is not started: %v", err)
	}
}
