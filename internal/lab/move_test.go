package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/wires"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// roaming is a lab whose host has a second link that waits for it.
const roaming = `
name: NAME
nodes:
  ctl: controller
  r1: {kind: router, service: true}
  r2: router
  c1: host
links:
  - [r1, r2]
  - {ends: [c1, r1], rate: 10Mbit}
  - {ends: [c1, r2], unplugged: true}
`

func roamingLab(t *testing.T, name string) *Lab {
	t.Helper()
	nstest.Root(t)
	f, err := file.Parse("roaming.yaml", []byte(strings.Replace(roaming, "NAME", nstest.LabNamed(name), 1)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Up(t.Context(), f, Options{stub: []string{"sleep", "1000"}, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Down(context.Background(), f.Name, l.opt) })
	return l
}

// linkStates are the states of all links, in the order of the file.
func linkStates(t *testing.T, l *Lab) string {
	t.Helper()
	s, err := l.Status()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, link := range s.Links {
		all = append(all, link.State)
	}
	return strings.Join(all, " ")
}

// hears waits until a router answers the host over the link between them.
func hears(t *testing.T, l *Lab, router string) {
	t.Helper()
	far := l.plan.Node(router).LinkLocal
	nstest.Wait(t, fmt.Sprintf("c1 to %v", far), func() error {
		return wires.In(l.plan.Node("c1").Netns, func() error {
			i, err := net.InterfaceByName("to-" + router) // package net remembers names of zones for a minute
			if err != nil {
				return err
			}
			err = ask(netip.AddrPortFrom(far.WithZone(strconv.Itoa(i.Index)), 9))
			if errors.Is(err, syscall.ECONNREFUSED) {
				return nil
			}
			return fmt.Errorf("asked %v: %v", far, err)
		})
	})
}

func TestAHostMovesFromLinkToLink(t *testing.T) {
	l := roamingLab(t, "move")
	if got := linkStates(t, l); got != "up up unplugged" {
		t.Fatalf("links at first: %s", got)
	}
	hears(t, l, "r1")
	for _, step := range []struct{ do, want, router string }{
		{"move c1 r1 r2", "up unplugged up", "r2"},
		{"move c1 r2 r1 gap 10ms", "up up unplugged", "r1"},
		{"move c1 r1 r2 gap 10ms first", "up unplugged up", "r2"},
		{"move c1 r2 r1 first", "up up unplugged", "r1"},
		{"heal c1 r2", "up up up", "r2"},
	} {
		act(t, l, step.do)
		if got := linkStates(t, l); got != step.want {
			t.Errorf("links after %s: %s, want %s", step.do, got, step.want)
		}
		hears(t, l, step.router)
	}
}

func TestAnInterfaceThatWasRemovedComesBackAnew(t *testing.T) {
	l := roamingLab(t, "anew")
	index := func() string {
		out, err := l.Output(t.Context(), "c1", "cat", "/proc/net/if_inet6")
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(out), "\n") {
			if strings.HasSuffix(line, " to-r1") {
				return strings.Fields(line)[1]
			}
		}
		return ""
	}
	first := index()
	act(t, l, "remove c1 r1")
	if got := linkStates(t, l); got != "up down unplugged" || index() != "" {
		t.Errorf("after remove: links %s, interface %q", got, index())
	}
	act(t, l, "remove c1 r1") // is gone
	act(t, l, "heal c1 r1")
	hears(t, l, "r1")
	if got := linkStates(t, l); got != "up up unplugged" || index() == first {
		t.Errorf("after heal: links %s, interface %s, before it was %s", got, index(), first)
	}
	if rate, _ := l.Output(t.Context(), "c1", "tc", "qdisc", "show", "dev", "to-r1"); !strings.Contains(string(rate), "rate 10Mbit") {
		t.Errorf("rate after heal: %s", rate)
	}
}
