package lab

import (
	"context"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// kernel is a network of plain IP with routers in the kernel alone.
const kernel = `
name: NAME
nodes: {h1: host, r1: plain, r2: plain, h2: host}
links: [[h1, r1], [r1, r2], [r2, h2]]
`

func bareLab(t *testing.T, text, name string) *Lab {
	t.Helper()
	nstest.Root(t)
	f, err := file.Parse("bare.yaml", []byte(strings.Replace(text, "NAME", nstest.LabNamed(name), 1)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Up(t.Context(), f, Options{Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Down(context.Background(), f.Name, l.opt) })
	return l
}

func TestHostsOfPlainIPFindEachOtherByName(t *testing.T) {
	before := machine(t)
	l := bareLab(t, kernel, "kernel")
	for _, ping := range []string{"-4 h2", "-6 h2", "-6 r2", "-4 10.95.0.2"} {
		out, err := l.Output(t.Context(), "h1", strings.Fields("ping -c 1 -W 5 "+ping)...)
		if err != nil {
			t.Errorf("ping %s: %v\n%s", ping, err, out)
		}
	}
	if _, err := l.Admin(); err == nil || !strings.Contains(err.Error(), "plain IP") {
		t.Errorf("the controller of a network without one: %v", err)
	}
	if s, err := l.Status(); err != nil || s.Controller != "" || len(s.Nodes) != 4 || s.Links[1].State != "up" {
		t.Errorf("status %+v, %v", s, err)
	}
	if err := Down(t.Context(), l.File.Name, l.opt); err != nil {
		t.Fatal(err)
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
