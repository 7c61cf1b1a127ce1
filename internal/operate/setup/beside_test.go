package setup

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// A machine's host is behind its router: it looks for its uplinks again when that came or went, and leaves before it.
func TestAHostLooksAgainWhenItsMachineBecomesARouterOrIsNoneAnyMore(t *testing.T) {
	m := image(t, nil)
	install(t, m, options(Router))
	install(t, m, options(Host))
	running := map[string]bool{Host.Unit(): true}
	var ran []string
	m.Live = true
	m.Run = func(args ...string) error {
		unit := args[len(args)-1]
		switch {
		case slices.Contains(args, "is-active") && !running[unit]:
			return errors.New("inactive")
		case args[1] == "start", args[1] == "restart":
			running[unit] = true
		case args[1] == "stop":
			running[unit] = false
		}
		if args[1] == "start" || args[1] == "restart" || args[1] == "stop" {
			ran = append(ran, args[1]+" "+strings.TrimSuffix(strings.TrimPrefix(unit, "scaffold-"), ".service"))
		}
		return nil
	}
	expect := func(when, want string) {
		t.Helper()
		if got := strings.Join(ran, ", "); got != want {
			t.Errorf("%s it ran %q, want %q", when, got, want)
		}
		ran = nil
	}
	begin := func(r Role) {
		t.Helper()
		if err := m.Begin(r, true); err != nil {
			t.Error(err)
		}
	}
	begin(Router)
	expect("at the router's start", "start routerd, restart hostd")
	begin(Router)
	expect("at its restart", "restart routerd")
	rm, err := m.Removal(nil, false, false)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Join(rm.Lines(m), "\n"); strings.Index(lines, "stop "+Host.Unit()) > strings.Index(lines, "stop "+Router.Unit()) {
		t.Errorf("the router goes before its host:\n%s", lines)
	}
	uninstall(t, m, false, Router)
	expect("without the router", "stop routerd, restart hostd")
	uninstall(t, m, false, Host)
	if got := strings.Join(ran, ", "); got != "stop hostd" && !strings.HasPrefix(got, "stop hostd, stop run-scaffold-bpf") {
		t.Errorf("without the host: %q", got)
	}
}
