package ends

import (
	"fmt"
	"net/netip"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// switched is one link, made by an Open vSwitch that sends the connections of web to an agent at one of its ports, with no
// more changed than the MAC address.
func switched(t *testing.T) (*network, []family) {
	t.Helper()
	ethtool := nstest.Program(t, "ethtool", "ethtool")
	sw := nstest.New(t, "switch")
	n := &network{client: nstest.New(t, "client"), router: nstest.New(t, "agent"), server: nstest.New(t, "server"), ports: []string{"eth0"}}
	o := sw.NewOVS(t)
	bridge := "unix:" + o.Bridge(t, "br0", "OpenFlow13")
	for i, h := range []*nstest.NS{n.client, n.server, n.router} {
		port := fmt.Sprint("port", i+1)
		nstest.Veth(t, h, "eth0", sw, port)
		h.Run(t, ethtool, "-K", "eth0", "tx", "off") // a switch in a process completes no checksums
		h.Addr(t, "eth0", fmt.Sprintf("10.3.0.%d/24", i+2))
		h.Addr(t, "eth0", fmt.Sprintf("fd03::%d/64", i+2))
		o.Vsctl(t, "add-port", "br0", port, "--", "set", "interface", port, fmt.Sprint("ofport_request=", i+1))
	}
	n.router.Forward(t)
	n.router.Sysctl(t, "net/ipv4/ip_forward", "1")
	agent := n.router.MAC(t, "eth0")
	for _, rule := range []string{
		"priority=0,actions=normal",
		"priority=9,in_port=1,tcp,tp_dst=80,actions=mod_dl_dst:%v,output:3", "priority=9,in_port=2,tcp,tp_src=80,actions=mod_dl_dst:%v,output:3",
		"priority=9,in_port=1,tcp6,tp_dst=80,actions=mod_dl_dst:%v,output:3", "priority=9,in_port=2,tcp6,tp_src=80,actions=mod_dl_dst:%v,output:3",
	} {
		if rule != "priority=0,actions=normal" {
			rule = fmt.Sprintf(rule, agent)
		}
		o.Ofctl(t, "-O", "OpenFlow13", "add-flow", bridge, rule)
	}
	return n, []family{{"IPv4", "10.3.0.2", "10.3.0.3", "10.3.0.0/24", "10.3.0.0/24"}, {"IPv6", "fd03::2", "fd03::3", "fd03::/64", "fd03::/64"}}
}

// TestAnAgentAtAPortOfASwitch: hosts that see each other's MAC address, and one port for both sides.
func TestAnAgentAtAPortOfASwitch(t *testing.T) {
	n, both := switched(t)
	var lanes []Lane
	n.start(t, agentConfig{})
	for i, of := range both {
		n.echo(t, of.at(80))
		older, err := n.client.Dial("tcp", of.at(80))
		must(t, err, talk(older, "older"))
		lanes = append(lanes, Lane{Number: uint64(i + 1), Client: netip.MustParsePrefix(of.clientNet), Server: netip.MustParsePrefix(of.serverNet), Port: 80})
		n.lanes(t, lanes...)
		c, err := n.client.Dial("tcp", of.at(80))
		must(t, err, talk(c, "boosted"), talk(older, "older still"), finish(older), finish(c))
		n.agent.WaitFor(t, "joined "+c.LocalAddr().String())
	}
	n.agent.Kill()
	for _, of := range both {
		n.untilPassed(t, of)
	}
}
