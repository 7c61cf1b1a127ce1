package lab

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// door is a network that another machine joins by an interface of this one.
const door = `
name: NAME
nodes: {h1: host, r1: emulated, lan: {kind: outside, interface: DEV, addresses: [192.0.2.1/24, "2001:db8::1/64"]}}
links: [[h1, r1], {ends: [r1, lan], delay: 1ms}]
`

func TestAnotherMachineJoinsAtAnInterfaceOfThisOne(t *testing.T) {
	nstest.Root(t)
	dev := fmt.Sprintf("out%d", os.Getpid()%1e6)
	here, other := nstest.Enter(t, "here", "/proc/thread-self/ns/net"), nstest.New(t, "other")
	nstest.Veth(t, here, dev, other, "eth0")
	end := here.Dev(t, dev)
	t.Cleanup(func() { here.Link().LinkDel(end) }) // else it goes with the other namespace, some time later
	other.Addr(t, "eth0", "192.0.2.7/24")
	other.Addr(t, "eth0", "2001:db8::7/64")
	other.Route(t, "fd5f::/16", "2001:db8::1", "eth0")
	l := bareLab(t, strings.Replace(door, "DEV", dev, 1), "door")
	sees(t, l, "h1", "2001:db8::7")
	sees(t, l, "h1", "192.0.2.1")
	if out, err := other.Try("ping", "-c", "1", "-W", "5", l.plan.Node("h1").Known()[0].String()); err != nil {
		t.Errorf("from outside: %v\n%s", err, out)
	}
	if s := stateOf(t, l, "r1", "lan"); s != "up" {
		t.Errorf("the link outside is %s", s)
	}
}

func TestAnInterfaceThatIsNotThereIsNamed(t *testing.T) {
	nstest.Root(t)
	before := machine(t)
	f, err := file.Parse("door.yaml", []byte(strings.NewReplacer("DEV", "nosuchdev0", "NAME", nstest.LabNamed("nodoor")).Replace(door)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Up(t.Context(), f, Options{Log: t.Logf}); err == nil || !strings.Contains(err.Error(), "nosuchdev0") {
		t.Errorf("up: %v", err)
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
