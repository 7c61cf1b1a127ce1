package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
	msg "scaffold.dev/scaffold/wire"
)

// Flows that were moved under the first keys of their hosts go on while all of these get others, and are moved by them.
// The key of a host that is forgotten moves nothing any more.
func TestKeysChangeUnderLiveFlows(t *testing.T) {
	m := theAttacked(t)
	s := m.under(700)
	first := map[string]sid.Locator{}
	for _, host := range []string{"c1", "s1", "s2"} {
		first[host] = m.locator(host)
		m.rotates(host)
	}
	if os.Getenv("SCAFFOLD_PLANE") == "" { // a router in the engine has no daemon that could be asked
		m.routerRotates("ra")
	}
	for host, at := range first {
		if now := m.locator(host); now != at {
			t.Errorf("%s was at %v, and with its new key it is at %v", host, at, now)
		}
	}
	s.unmoved("new keys of all three hosts")
	m.change()
	m.goOn("a move under the new keys", s.talks...)
	nstest.Wait(t, m.look(), func() error {
		for _, host := range []string{"s1", "s2"} {
			for stable, f := range m.flows(host) {
				if c := m.flows("c1")[stable]; c != nil && (c.Moves < 2 || endOf("", c, 0).local != endOf("", f, 0).peer) {
					return fmt.Errorf("%s sees %v, the client %v", host, f, c)
				}
			}
		}
		return nil
	})

	client, server := s.ends("s1", "tcp")
	place, own := s.nowhere(), m.hostKey("c1")
	keys := keysOf(own, attacked.key, valid, place, client.at()) // whatever certificates it can have
	forged := keys.Sign(client.rsyn(msg.TypeRSYN, place, client.at()), place, client.at())
	if out, err := m.run("ctl", self, "host", "forget", "c1", "--lab", m.lab.File.Name); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	was := m.flows("s1")[server.stable.String()]
	s.counts(m.liar("rs"), said("RSYN of a host that was forgotten", place.Addr(uint64(sid.NewSocketID(0xbad))), server.local, forged, "s1", "session_not_authentic"))
	if now := m.flows("s1")[server.stable.String()]; now == nil || now.WirePeer != was.WirePeer {
		t.Errorf("the flow was moved by a host that was forgotten: %v, before %v", now, was)
	}
}

// routerRotates gives a router another key, by the command.
func (m *mobile) routerRotates(router string) {
	m.t.Helper()
	out, err := m.run("ctl", self, "rotate", "--socket", m.lab.Socket(router))
	if err != nil || !strings.Contains(out, "router "+router+" has the key") {
		m.t.Errorf("a router's key: %v\n%s", err, out)
	}
}

// rotates gives a host another key, and waits until the network has it.
func (m *mobile) rotates(host string) {
	m.t.Helper()
	answer, err := m.local(host).RotateKey(m.t.Context(), connect.NewRequest(&apiv1.RotateKeyRequest{}))
	if err != nil {
		m.t.Fatalf("%s gets no other key: %v", host, err)
	}
	id := fmt.Sprintf("%08x", msg.KeyID(answer.Msg.Key))
	nstest.Wait(m.t, m.look(), func() error {
		client, base, err := api.Dial(m.lab.Controller())
		if err != nil {
			return err
		}
		defer client.CloseIdleConnections()
		list, err := apiv1connect.NewTrustClient(client, base).ListMembers(m.t.Context(), connect.NewRequest(&apiv1.ListMembersRequest{}))
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Msg.Members, func(m *apiv1.Member) bool { return m.Name == host && m.Key == id }) {
			return fmt.Errorf("%s is to have the key %s, and the members are %v", host, id, list.Msg.Members)
		}
		status, err := m.local(host).GetHostStatus(m.t.Context(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
		if err != nil || status.Msg.State != "joined" {
			return fmt.Errorf("%s: %v, %v", host, status, err)
		}
		return nil
	})
}
