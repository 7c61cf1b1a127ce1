package boost

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/operate/setup"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/internal/trust"
)

func readFull(c net.Conn, b []byte) (int, error) {
	c.SetReadDeadline(time.Now().Add(nstest.Deadline))
	return io.ReadFull(c, b)
}

// An operator says which connections; agents that have no file of lanes carry them, and leave them when he says so. What
// began before stays as it began.
func TestAgentsCarryWhatTheControllerSays(t *testing.T) {
	n := newNetwork(t)
	n.start("x")
	n.start("y")
	before := n.connect()
	n.sites()
	n.settled()
	n.allow()
	n.settled()
	boosted := n.carried(true)
	if n.boosted(before) {
		t.Error("a connection of before the entry is boosted")
	}
	n.echoes(before, "older")
	n.echoes(boosted, "boosted")
	if all, err := n.list(); err != nil || all.Entries[0].State != "boosts" || all.Agents[0].Sessions == 0 && !await(t, n) {
		t.Errorf("%v, %v", all, err)
	}
	nstest.Wait(t, "what agents said", func() error { // the one that is carried, and what was said on it
		all, err := n.boost.ListBoostSessions(t.Context(), connect.NewRequest(&apiv1.ListBoostSessionsRequest{Entry: "all"}))
		if err != nil {
			return err
		}
		for _, s := range all.Msg.Sessions {
			if s.Client == boosted.client.LocalAddr().String() && s.Server == serverAndPort && s.Near == "x" && s.Far == "y" && s.Sent == 7 && s.Received == 7 {
				return nil
			}
		}
		return fmt.Errorf("sessions: %v", all.Msg.Sessions)
	})
	if _, err := n.boost.DenyBoost(t.Context(), connect.NewRequest(&apiv1.DenyBoostRequest{Name: "all"})); err != nil {
		t.Fatal(err)
	}
	n.carried(false)
	n.echoes(boosted, "after the entry's end")
}

// await waits for an agent's word on its sessions.
func await(t *testing.T, n *network) bool {
	t.Helper()
	nstest.Wait(t, "the agents' output", func() error {
		all, err := n.list()
		if err == nil && all.Agents[0].Sessions == 0 {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
	return true
}

// While no controller is there agents go on: with what they carry, with new connections, and after a restart of the
// controller nobody has noticed anything.
func TestAgentsGoOnWithoutAController(t *testing.T) {
	safety.Test(t, safety.Flow)
	n := newNetwork(t)
	n.boosts()
	old := n.carried(true)
	n.away()
	n.echoes(old, "without a controller")
	if f := n.connect(); !n.boosted(f) {
		t.Error("a new connection is not boosted without a controller")
	}
	n.control()
	n.echoes(old, "while it begins")
	if f := n.connect(); !n.boosted(f) {
		t.Error("a new connection is not boosted while the controller begins")
	}
	n.settled()
	n.echoes(old, "with the next controller")
	if f := n.connect(); !n.boosted(f) {
		t.Error("a new connection is not boosted with the next controller")
	}
}

// A drained agent takes no more; what it carries goes on.
func TestADrainedAgentFinishesWhatItCarries(t *testing.T) {
	safety.Test(t, safety.Flow)
	n := newNetwork(t)
	n.boosts()
	old := n.carried(true)
	if _, err := n.boost.DrainBoostAgent(t.Context(), connect.NewRequest(&apiv1.DrainBoostAgentRequest{Name: "y"})); err != nil {
		t.Fatal(err)
	}
	n.carried(false)
	n.echoes(old, "at a drained agent")
	all, err := n.list()
	if err != nil || all.Entries[0].State != "unserved" || !strings.Contains(all.Entries[0].Why, `"west"`) {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := n.boost.DrainBoostAgent(t.Context(), connect.NewRequest(&apiv1.DrainBoostAgentRequest{Name: "y", Undrain: true})); err != nil {
		t.Fatal(err)
	}
	n.carried(true)
}

// An agent that dies and comes back gets its lanes again, without an operator; meanwhile connections pass.
func TestAnAgentThatComesBackCarriesAgain(t *testing.T) {
	n := newNetwork(t)
	n.boosts()
	for _, name := range []string{"x", "y"} {
		n.carried(true)
		n.agents[name].Signal(syscall.SIGKILL)
		n.agents[name].Wait() // it was killed: that is no error here
		n.carried(false)
		n.start(name)
	}
	n.carried(true)
}

// An agent needs no more of root than its unit leaves it: for clients with ports below 1024, for its worker's death too.
func TestAnAgentNeedsWhatItsUnitLeavesIt(t *testing.T) {
	n := newNetwork(t)
	n.capabilities = setup.AgentCapabilities
	n.boosts()
	f := n.carried(true)
	n.echoes(f, "with few capabilities")
	for _, name := range []string{"x", "y"} {
		for _, pid := range n.agents[name].Children() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		n.agents[name].WaitFor(t, "another worker has taken over")
	}
	n.echoes(f, "after both workers have died")
	f.client.Close()
	n.clientPort = 1000
	n.echoes(n.carried(true), "from a port below 1024")
}

// In a network with keys agents are members by credentials of their own, and only as whom these name.
func TestAgentsOfANetworkWithKeysAreItsMembers(t *testing.T) {
	safety.Test(t, safety.Door)
	n := newNetworkWithKeys(t)
	n.member("x", trust.Agent, "x")
	n.member("y", trust.Agent, "y")
	n.boosts()
	n.carried(true)
	for _, c := range []struct {
		role       trust.Role
		name, says string
	}{
		{trust.Host, "y", "may not do this"}, // another role
		{trust.Agent, "z", "its credential is of another name"},
		{"", "", "there is no credential for it"}, // none
	} {
		n.agents["y"].Kill()
		os.RemoveAll(filepath.Join(n.dir, "y"))
		if c.name != "" {
			n.member("y", c.role, c.name)
		}
		n.start("y")
		n.agents["y"].WaitFor(t, c.says)
	}
}
