package ends

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// TestAStrictRouterDelivers: one that looks where the source of each packet would be answered, by its mark, too.
func TestAStrictRouterDelivers(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		for _, dev := range []string{"all", "p0", "p1", "lo"} {
			n.router.Sysctl(t, "net/ipv4/conf/"+dev+"/rp_filter", "1")
			n.router.Sysctl(t, "net/ipv4/conf/"+dev+"/src_valid_mark", "1")
		}
		n.start(t, agentConfig{Lanes: everything()})
		n.echo(t, of.at(80))
		c, err := n.client.Dial("tcp", of.at(80))
		if err != nil {
			t.Fatalf("%v\n%s", err, n.agent.Output())
		}
		must(t, talk(c, "hello"), finish(c))
	})
}

// TestAnErrorOfICMPIsARefusal: it is about a segment that the agent sent, and for the client's address.
func TestAnErrorOfICMPIsARefusal(t *testing.T) {
	nft := nstest.Program(t, "nft", "nftables")
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		n.server.Run(t, nft, "add table inet t; add chain inet t in { type filter hook input priority 0; }; "+
			"add rule inet t in tcp dport 80 reject with icmpx type host-unreachable")
		if _, err := n.client.Dial("tcp", of.at(80)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%v, expected that it is refused\n%s", err, n.agent.Output())
		}
		if all := n.counters(t); all["delivered_error"] == 0 {
			t.Errorf("counters %v", all)
		}
	})
}

// TestIdleEndsAreAskedWhetherTheyLive: the kernel's timer runs at both sockets.
func TestIdleEndsAreAskedWhetherTheyLive(t *testing.T) {
	ss := nstest.Program(t, "ss", "iproute2")
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		n.echo(t, of.at(80))
		c, err := n.client.Dial("tcp", of.at(80))
		must(t, err, talk(c, "hello"))
		nstest.Wait(t, "ss -tno in the router's namespace", func() error {
			out := n.router.Run(t, ss, "-tnoH")
			if strings.Count(out, "timer:(keepalive,") != 2 {
				return errors.New(out)
			}
			return nil
		})
		must(t, finish(c))
	})
}

// TestNobodyConnectsToTheListener: a program of the router that finds its port is reset.
func TestNobodyConnectsToTheListener(t *testing.T) {
	safety.Test(t, safety.Door)
	ss := nstest.Program(t, "ss", "iproute2")
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		loopback := "127.0.0.1"
		if of.name == "IPv6" {
			loopback = "[::1]"
		}
		var at string
		for _, w := range strings.Fields(n.router.Run(t, ss, "-tlnH")) {
			if strings.HasPrefix(w, loopback+":") {
				at = w
			}
		}
		c, err := n.router.Dial("tcp", at)
		if err == nil {
			err = talk(c, "hello")
			c.Close()
		}
		if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
			t.Errorf("a connection to the listener at %s: %v, expected a reset", at, err)
		}
	})
}
