package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// machine is a run directory with sockets in it, all of them alive but those named dead*.
func machine(t *testing.T, sockets ...string) *remote {
	t.Helper()
	dir := t.TempDir()
	for _, s := range sockets {
		path := filepath.Join(dir, s)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	exists := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil && !strings.Contains(path, "dead")
	}
	return &remote{run: dir, getenv: func(string) string { return "" }, alive: exists}
}

func TestTheNearestAPIIsAsked(t *testing.T) {
	const lab1, lab2 = "lab/one/ctl/controld.sock", "lab/two/ctl/controld.sock"
	for _, c := range []struct {
		name           string
		sockets        []string
		api, lab, env  string
		want, complain string
	}{
		{name: "flag before all", sockets: []string{"hostd.sock"}, api: "unix:/x", lab: "one", env: "unix:/y", want: "unix:/x"},
		{name: "variable before the machine", sockets: []string{"hostd.sock"}, env: "unix:/y", want: "unix:/y"},
		{name: "lab before the variable", sockets: []string{lab1}, lab: "one", env: "unix:/y", want: lab1},
		{name: "host daemon before controller", sockets: []string{"controld.sock", "hostd.sock"}, want: "hostd.sock"},
		{name: "controller", sockets: []string{"controld.sock", lab1}, want: "controld.sock"},
		{name: "the only lab", sockets: []string{lab1, "lab/dead/ctl/controld.sock"}, want: lab1},
		{name: "named lab", sockets: []string{"hostd.sock", lab1, lab2}, lab: "two", want: lab2},
		{name: "two labs", sockets: []string{lab1, lab2}, complain: "several labs run here: one, two"},
		{name: "wrong lab", sockets: []string{lab1}, lab: "three", complain: `no lab "three" answers`},
		{name: "nothing", complain: "no scaffold daemon answers"},
	} {
		r := machine(t, c.sockets...)
		r.api, r.lab, r.getenv = c.api, c.lab, func(string) string { return c.env }
		got, err := r.admin()
		if c.complain != "" {
			if err == nil || !strings.Contains(err.Error(), c.complain) {
				t.Errorf("%s: %q, %v; want an error with %q", c.name, got, err, c.complain)
			}
			continue
		}
		if err != nil || !strings.HasSuffix(got, c.want) || !strings.HasPrefix(got, "unix:") {
			t.Errorf("%s: %q, %v; want …%q", c.name, got, err, c.want)
		}
	}
}

func TestFlowsAskEveryHostOfALab(t *testing.T) {
	r := machine(t, "lab/one/c1/hostd.sock", "lab/one/s1/hostd.sock", "lab/one/dead/hostd.sock")
	if all, err := r.hosts(""); err != nil || len(all) != 2 || all[0].node != "c1" {
		t.Errorf("hosts = %v, %v; want c1 and s1", all, err)
	}
	if one, err := r.hosts("s1"); err != nil || len(one) != 1 || one[0].node != "s1" {
		t.Errorf("hosts(s1) = %v, %v", one, err)
	}
	for _, c := range []struct {
		on   *remote
		host string
		code ExitCode
	}{
		{r, "s9", ExitNotFound},
		{r, "dead", ExitUnreachable},
		{r, "[", ExitNotFound},
		{machine(t), "s9", ExitUnreachable}, // no lab to have it
	} {
		_, err := c.on.hosts(c.host)
		var known *exitError
		if !errors.As(err, &known) || known.code != c.code {
			t.Errorf("hosts(%s): %v; want exit code %d", c.host, err, c.code)
		}
	}
}
