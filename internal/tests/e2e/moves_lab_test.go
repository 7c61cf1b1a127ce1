package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// moving is the lab of hosts that move, for all tests that need it.
var moving struct {
	once  sync.Once
	lab   *lab.Lab
	admin apiv1connect.AdminClient
	err   error

	mu sync.Mutex
	at map[string]string // where hosts are: the router
}

// A mobile is that lab, as one test sees it.
type mobile struct {
	*network
	name string     // of the service that talks go to
	addr netip.Addr // of it
}

// others is where each host is when it is not at the first one.
var others = map[string]string{"ra": "rb", "rb": "ra", "rs": "rd", "rd": "rs"}

func theMobile(t *testing.T) *mobile {
	t.Helper()
	nstest.Root(t)
	moving.once.Do(func() {
		moving.at = map[string]string{"c1": "ra", "s2": "rs"}
		moving.lab, moving.admin, moving.err = bringUpFile("testdata/moves.yaml", "_mv")
	})
	if moving.err != nil {
		t.Fatalf("no lab to run in: %v", moving.err)
	}
	n := &network{t, moving.lab, moving.admin, map[string]*nstest.NS{}}
	t.Cleanup(n.explain)
	return n.talkingTo("move")
}

// talkingTo is the lab with a service of its own.
func (n *network) talkingTo(name string, policy ...*apiv1.Policy) *mobile {
	n.t.Helper()
	return &mobile{network: n, name: name, addr: n.create(name, policy...)}
}

func bringUpFile(path, suffix string) (*lab.Lab, apiv1connect.AdminClient, error) {
	f, err := file.Load(path)
	if err != nil {
		return nil, nil, err
	}
	f.Name = nstest.LabName() + suffix
	l, err := lab.Up(context.Background(), f, lab.Options{})
	if err != nil {
		return nil, nil, err
	}
	admin, err := l.Admin()
	return l, admin, err
}

func takeMovingDown() error {
	if moving.lab == nil {
		return nil
	}
	return lab.Down(context.Background(), moving.lab.File.Name, lab.Options{})
}

// hop moves a host to its other router. how is as in the action: "gap 100ms", "gap 50ms first".
func (m *mobile) hop(host, how string) {
	m.t.Helper()
	moving.mu.Lock()
	from := moving.at[host]
	moving.at[host] = others[from]
	moving.mu.Unlock()
	m.do(fmt.Sprintf("move %s %s %s %s", host, from, others[from], how))
}

// middle sets the links between the routers.
func (m *mobile) middle(params string) {
	m.t.Helper()
	for _, r := range []string{"ra", "rb", "rd"} {
		m.do("link " + r + " rs " + params)
	}
}
