package labcmd

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestFlagsOfExecEndWhereTheCommandBegins(t *testing.T) {
	for line, want := range map[string]struct {
		lab  string
		argv []string
	}{
		"c1 -- curl -s http://web.svc/": {"", []string{"curl", "-s", "http://web.svc/"}},
		"c1 curl -s http://web.svc/":    {"", []string{"curl", "-s", "http://web.svc/"}},
		"--lab web c1 -- ip route":      {"web", []string{"ip", "route"}},
		"c1 --lab web -- ip route":      {"web", []string{"ip", "route"}},
		"c1 --lab=web ip -6 route":      {"web", []string{"ip", "-6", "route"}},
		"-- c1 -- ip route":             {"", []string{"ip", "route"}},
		"c1 scaffold status --lab web":  {"", []string{"scaffold", "status", "--lab", "web"}},
		"c1 -- env -- ip --help":        {"", []string{"env", "--", "ip", "--help"}},
	} {
		cmd := labExecCommand()
		if err := cmd.ParseFlags(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		argv, err := afterNode(cmd, cmd.Flags().Args())
		if lab, _ := cmd.Flags().GetString("lab"); err != nil || lab != want.lab || !slices.Equal(argv, want.argv) {
			t.Errorf("%s: lab %q, command %q, %v; want %q and %q", line, lab, argv, err, want.lab, want.argv)
		}
	}
}

func TestExecWithoutACommandIsMisuse(t *testing.T) {
	for line, want := range map[string]string{"": "which node", "c1": "which command", "c1 --": "which command", "c1 --lab web": "which command", "c1 --bal web ip": "unknown flag: --bal"} {
		cmd := labExecCommand()
		if _, err := afterNode(cmd, strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
	cmd := labExecCommand()
	cmd.InitDefaultHelpFlag()
	if _, err := afterNode(cmd, []string{"c1", "--help"}); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("--help behind the node: %v", err)
	}
}
