package boost

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api/member"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/wire"
)

// rotate gets an agent another key, as `scaffold rotate` does, and waits until it has joined with it.
func (n *network) rotate(agent string) {
	n.t.Helper()
	at := n.places[agent].ns
	keys := &member.Credentials{Directory: trust.Directory(filepath.Join(n.dir, agent))}
	key, err := keys.RotateAt(n.t.Context(), "https://"+n.door.Addr().String(), func(_ context.Context, network, to string) (net.Conn, error) {
		return at.Dial(network, to)
	}, false)
	if err != nil {
		n.t.Fatal(err)
	}
	want := fmt.Sprintf("%08x", wire.KeyID(key))
	nstest.Wait(n.t, "what agents said", func() error {
		all, err := n.trust.ListMembers(n.t.Context(), connect.NewRequest(&apiv1.ListMembersRequest{}))
		if err != nil {
			return err
		}
		for _, m := range all.Msg.Members {
			if m.Name == agent && m.Key == want {
				return nil
			}
		}
		return fmt.Errorf("members: %v, want %s with key %s; it said %s", all.Msg.Members, agent, want, n.said(agent))
	})
}

// again has each agent's worker killed, so that trunks begin anew.
func (n *network) again(what string, f flow) {
	n.t.Helper()
	for _, name := range []string{"x", "y"} {
		for _, pid := range n.agents[name].Children() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		n.echoes(f, what+": the worker of "+name+" has died")
	}
	n.echoes(n.carried(true), what)
}

// Agents get other keys while connections are carried, and nobody notices: not an agent that is away from its controller either,
// which knows the other one by its key of before until it hears of the next one.
func TestAgentsGetOtherKeysAndConnectionsGoOn(t *testing.T) {
	safety.Test(t, safety.Flow)
	n := newNetworkWithKeys(t)
	n.member("x", trust.Agent, "x")
	n.member("y", trust.Agent, "y")
	n.boosts()
	f := n.carried(true)
	n.echoes(f, "before")
	for _, name := range []string{"x", "y"} {
		n.rotate(name)
		n.echoes(f, name+" has another key")
	}
	n.again("both have other keys", f)
	deaf := []string{"ip", "rule", "add", "pref", "100", "ipproto", "tcp", "sport", "23728", "blackhole"} // what the controller says leaves x no more; x itself hears it
	n.x.Run(t, deaf...)
	n.rotate("x")
	n.again("y has not heard that x has another key", f)
	n.x.Run(t, append([]string{"ip", "rule", "del"}, deaf[3:]...)...)
	n.settled()
	n.again("y has heard of it", f)
}
