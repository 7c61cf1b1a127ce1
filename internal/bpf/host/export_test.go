package host

import (
	"net"
	"testing"

	"scaffold.dev/scaffold/sid"
)

// What tests outside of the package see of its network: those that use package kick, which imports this one.

type (
	TestNetwork = testNetwork
	TestHost    = testHost
)

func NewTestNetwork(t testing.TB) *TestNetwork { return newNetwork(t) }

func (n *testNetwork) Join(t testing.TB, name string, number uint16) *TestHost {
	return n.host(t, name, number, Config{})
}

func (n *testNetwork) Serve(t testing.TB, triple sid.Triple, hosts ...*TestHost) {
	n.serve(t, triple, hosts...)
}

// Cut takes the link between the router and the host away.
func (n *testNetwork) Cut(t testing.TB, h *TestHost) { n.router.Down(t, h.Name) }

func (h *testHost) Edge() *Edge          { return h.edge }
func (h *testHost) Locator() sid.Locator { return h.locator }
func (h *testHost) Heartbeat() error     { return h.edge.Beat() }

var (
	WebTCP  = webTCP
	WebAddr = webAddr
	Space   = space
)

func CountersAtFailure(t *testing.T, hosts ...*TestHost) { counters(t, hosts...) }

const StreamerEnv = streamerEnv

// Roomy gives the connection a send queue of many megabytes.
func Roomy(c *net.TCPConn) { roomy(c) }
