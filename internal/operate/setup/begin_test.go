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

// What is not well yet is told in sentences, whatever version the daemon is of, and never as it is sent.
func TestWhatIsNotWellIsASentence(t *testing.T) {
	for answer, want := range map[string]string{
		`{"healthy":false,"verdict":"critical","problems":[{"what":"host s1 has no router: eth0: no carrier","next":"scaffold host status"},{"what":"more","next":"x"}]}`: "host s1 has no router: eth0: no carrier (next: scaffold host status)",
		`{"healthy":false,"wrong":{"names":"no instance of web","drain":"drained"}}`:                                                                                      "drained; no instance of web",
		`{"healthy":false}`:             "it says that it is not, and not why (scaffold doctor, and journalctl of its unit, may)",
		`<html>not ours {"a":1}</html>`: "it says that it is not, and not why (scaffold doctor, and journalctl of its unit, may)",
	} {
		if got := worst([]byte(answer)); got != want || strings.ContainsAny(got, "{}\n") {
			t.Errorf("%s: %q, want %q", answer, got, want)
		}
	}
}

// TestADryRunShowsHowTheDaemonStarts: begun, restarted or left alone, as the installation would.
func TestADryRunShowsHowTheDaemonStarts(t *testing.T) {
	for _, c := range []struct {
		role        Role
		start, runs bool
		changed     bool
		want        string
	}{
		{role: Host, start: true, changed: true, want: "run     systemctl start scaffold-hostd.service: flows go on"},
		{role: Controller, start: true, runs: true, changed: true, want: "run     systemctl restart scaffold-controld.service: flows go on"},
		{role: Router, start: true, runs: true, want: "keep    scaffold-routerd.service: it runs, and nothing changes"},
		{role: Gateway, start: true, runs: true, changed: true, want: "run     systemctl kill --kill-who=main --signal=USR2 scaffold-gateway.service: flows go on"},
		{role: Host, changed: true, want: ""}, // --no-start, an image, a machine without systemd
	} {
		m := &Machine{Live: true, Run: func(...string) error {
			if !c.runs {
				return errors.New("inactive")
			}
			return nil
		}}
		p := &Plan{Role: c.role, start: c.start}
		if c.changed {
			p.Steps = []Step{file("/etc/x", []byte("x"), "")}
		}
		if got := m.Starts(p); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
