package e2e

import (
	"fmt"
	"slices"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestWhatStartsWithoutAController: routers know what served when the controller went, a host's daemon knows the services
// that it has served, and clients ask hosts.
func TestWhatStartsWithoutAController(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("starts")
	web, told := port(addr, 80), port(addr, 81)
	served := n.serveTCP("s1", web)
	n.serving("starts", "tcp", 80, 1)
	reaches := func(what, from, to string) {
		t.Helper()
		atServer, atClient := n.drops("s1"), n.drops(from)
		c, err := n.at(from).Dial("tcp6", to)
		if err == nil {
			defer c.Close()
			_, err = ask(c, "who")
		}
		if err != nil {
			t.Errorf("%s, from %s: %v\nthe edge of s1 counted meanwhile %v, that of %s %v\nlook at: %s",
				what, from, err, since(atServer, n.drops("s1")), from, since(atClient, n.drops(from)), n.look())
		}
	}
	reaches("before", "c1", web)
	ended := port(n.create("ended"), 80)
	l := n.serveTCP("s1", ended)
	n.serving("ended", "tcp", 80, 1)
	reaches("before", "c1", ended)
	l.Close()
	n.serving("ended", "tcp", 80, 0)
	n.kill("ctl/controld")
	defer func() {
		n.do("start ctl/controld")
		n.settled()
	}()
	n.alone("c1") // for a host with a controller believes what the network says of a service
	again := func() {
		served.Close()
		served = n.serveTCP("s1", web)
	}
	again()
	reaches("a server that started again", "c1", web)
	n.serveTCP("s1", told)
	n.serveTCP("s1", ended)
	if !n.switched() { // where it is the controller that refuses, and nobody is asked who was not refused
		reaches("a port that is new", "s1", told)
		reaches("a port that is new", "c1", told)
		reaches("the only server, which had been withdrawn", "c1", ended)
	}

	n.kill("s1/hostd")
	n.do("start s1/hostd")
	nstest.Wait(t, n.look(), func() error {
		r, err := n.local("s1").ListRegistrations(t.Context(), connect.NewRequest(&apiv1.ListRegistrationsRequest{}))
		if err == nil && !slices.ContainsFunc(r.Msg.Registrations, func(r *apiv1.LocalRegistration) bool { return r.Port == 80 }) {
			err = fmt.Errorf("the daemon knows of %v alone", r.Msg.Registrations)
		}
		return err
	})
	again()
	reaches("a server that started again, after its host's daemon", "c1", web)
}

// alone waits until a host's daemon has noticed that no controller leads.
func (n *network) alone(host string) {
	n.t.Helper()
	nstest.Wait(n.t, n.look(), func() error {
		r, err := n.local(host).GetHostStatus(n.t.Context(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
		if err == nil && r.Msg.State == "joined" {
			err = fmt.Errorf("%s takes itself for joined still", host)
		}
		return err
	})
}

// since are the counters that grew, and by how much.
func since(before, after map[string]uint64) map[string]uint64 {
	grown := map[string]uint64{}
	for name, now := range after {
		if by := now - before[name]; by != 0 {
			grown[name] = by
		}
	}
	return grown
}
