package e2e

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// attacked is the lab in which hosts prove who they are and somebody lies.
var attacked struct {
	once  sync.Once
	lab   *lab.Lab
	admin apiv1connect.AdminClient
	key   ed25519.PrivateKey // of the network: what a test needs to make an expired certificate
	at    string             // the router of c1
	err   error
}

func theAttacked(t *testing.T) *mobile {
	t.Helper()
	if os.Getenv("SCAFFOLD_PLANE") == file.OpenFlowPlane {
		t.Skip("the attackers sit on Linux routers")
	}
	return theAttackedOnAnyPlane(t)
}

func theAttackedOnAnyPlane(t *testing.T) *mobile {
	t.Helper()
	nstest.Root(t)
	attacked.once.Do(func() {
		attacked.at = "ra"
		attacked.lab, attacked.admin, attacked.err = bringUpFile("testdata/attacks.yaml", "_at")
		if attacked.err == nil {
			attacked.key, attacked.err = networkKey(t, attacked.lab)
		}
	})
	if attacked.err != nil {
		t.Fatalf("no lab to run in: %v", attacked.err)
	}
	m := &mobile{name: "move", network: &network{t, attacked.lab, attacked.admin, map[string]*nstest.NS{}}}
	t.Cleanup(m.explain)
	s, err := m.service("move")
	if err != nil {
		t.Fatal(err)
	}
	m.addr = netip.MustParseAddr(s.Address)
	return m
}

func takeAttackedDown() error {
	if attacked.lab == nil {
		return nil
	}
	return lab.Down(context.Background(), attacked.lab.File.Name, lab.Options{})
}

// networkKey reads the network's key from a copy of the controller's store.
func networkKey(t *testing.T, l *lab.Lab) (ed25519.PrivateKey, error) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(l.ProgramDir("ctl", "data"))); err != nil {
		return nil, err
	}
	s, err := store.Open(t.Context(), store.Config{Dir: dir, Network: strings.ReplaceAll(l.File.Name, "_", "-"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	state, err := s.Load(context.Background())
	if err != nil {
		return nil, err
	}
	if len(state.Key) != ed25519.SeedSize {
		return nil, fmt.Errorf("the store has a key of %d bytes", len(state.Key))
	}
	return ed25519.NewKeyFromSeed(state.Key), nil
}

// change moves the client to its other router.
func (m *mobile) change() {
	m.t.Helper()
	from := attacked.at
	attacked.at = others[from]
	m.do("move c1 " + from + " " + attacked.at)
}

// flows are those of a host by stable identifier, as `flow ls -o json` tells them.
func (m *mobile) flows(host string) map[string]*apiv1.Flow {
	m.t.Helper()
	r, err := m.local(host).ListFlows(m.t.Context(), connect.NewRequest(&apiv1.ListFlowsRequest{}))
	if err != nil {
		m.t.Fatal(err)
	}
	all := map[string]*apiv1.Flow{}
	for _, f := range r.Msg.Flows {
		if f.State != "closing" { // of tests before, which ended it: it stays for a minute, and moves with nobody
			all[f.Stable] = f
		}
	}
	return all
}

// picture is what an attack must leave alone: each flow's name, ends, peer, state and moves at each host.
func (m *mobile) picture() string {
	m.t.Helper()
	var s strings.Builder
	for _, host := range []string{"c1", "s1", "s2"} {
		all := m.flows(host)
		for _, stable := range slices.Sorted(maps.Keys(all)) {
			f := all[stable]
			fmt.Fprintf(&s, "%s %s %s: %s is %s, from %s to %s by %s, %d moves; its program sees %s and %s\n",
				host, f.Proto, stable, f.Id, f.State, f.WireLocal, f.WirePeer, f.Uplink, f.Moves, f.Local, f.Peer)
		}
	}
	return s.String()
}

func (m *mobile) waitFor(what string, check func() error) {
	m.t.Helper()
	nstest.Wait(m.t, what+"; "+m.look(), check)
}
