package remote_test

import (
	"errors"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/cli/remote/remotetest"
)

func TestTheNearestAPIIsAsked(t *testing.T) {
	const lab1, lab2 = "lab/one/ctl/controld.sock", "lab/two/ctl/controld.sock"
	for _, c := range []struct {
		name           string
		sockets        []string
		api, lab, env  string
		login          string
		denied         bool
		want, complain string
	}{
		{name: "flag before all", sockets: []string{"hostd.sock"}, api: "unix:/x", lab: "one", env: "unix:/y", want: "unix:/x"},
		{name: "variable before the machine", sockets: []string{"hostd.sock"}, env: "unix:/y", want: "unix:/y"},
		{name: "lab before the variable", sockets: []string{lab1}, lab: "one", env: "unix:/y", want: lab1},
		{name: "controller before host daemon", sockets: []string{"controld.sock", "hostd.sock"}, want: "controld.sock"},
		{name: "a login before the host daemon", sockets: []string{"hostd.sock"}, login: "unix:/login", want: "unix:/login"},
		{name: "the controller here before a login", sockets: []string{"controld.sock"}, login: "unix:/login", want: "controld.sock"},
		{name: "a login before a controller whose socket is others'", sockets: []string{"controld.sock"}, login: "unix:/login", denied: true, want: "unix:/login"},
		{name: "the host daemon before a controller whose socket is others'", sockets: []string{"controld.sock", "hostd.sock"}, denied: true, want: "hostd.sock"},
		{name: "a login before a lab", sockets: []string{lab1}, login: "unix:/login", want: "unix:/login"},
		{name: "a lab that is named before a login", sockets: []string{lab1}, lab: "one", login: "unix:/login", want: lab1},
		{name: "controller", sockets: []string{"controld.sock", lab1}, want: "controld.sock"},
		{name: "the only lab", sockets: []string{lab1, "lab/dead/ctl/controld.sock"}, want: lab1},
		{name: "named lab", sockets: []string{"hostd.sock", lab1, lab2}, lab: "two", want: lab2},
		{name: "two labs", sockets: []string{lab1, lab2}, complain: "several labs run here: one, two"},
		{name: "wrong lab", sockets: []string{lab1}, lab: "three", complain: `no lab "three" answers`},
		{name: "nothing", complain: "no scaffold daemon answers"},
	} {
		r := remotetest.Machine(t, c.sockets...)
		r.API, r.Lab, r.Getenv = c.api, c.lab, func(string) string { return c.env }
		r.Login, r.Mine = func() string { return c.login }, func(string) bool { return !c.denied }
		here, err := r.Choose()
		got := here.Endpoint
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
	r := remotetest.Machine(t, "lab/one/c1/hostd.sock", "lab/one/s1/hostd.sock", "lab/one/dead/hostd.sock")
	if all, err := r.Hosts(""); err != nil || len(all) != 2 || all[0].Node != "c1" {
		t.Errorf("hosts = %v, %v; want c1 and s1", all, err)
	}
	if one, err := r.Hosts("s1"); err != nil || len(one) != 1 || one[0].Node != "s1" {
		t.Errorf("hosts(s1) = %v, %v", one, err)
	}
	for _, c := range []struct {
		on   *remote.Remote
		host string
		code exit.Code
	}{
		{r, "s9", exit.NotFound},
		{r, "dead", exit.Unreachable},
		{r, "[", exit.NotFound},
		{remotetest.Machine(t), "s9", exit.Unreachable}, // no lab to have it
	} {
		_, err := c.on.Hosts(c.host)
		var known *exit.Error
		if !errors.As(err, &known) || known.Code != c.code {
			t.Errorf("hosts(%s): %v; want exit code %d", c.host, err, c.code)
		}
	}
}
