package oftables

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// TestOpenVSwitchKeepsChecksumsRight: kernels whose segments are large and whose checksums are to be computed by a
// device that is not there, through a rewrite of addresses, TCP and UDP.
func TestOpenVSwitchKeepsChecksumsRight(t *testing.T) {
	sw, client, server := nstest.New(t, "switch"), nstest.New(t, "client"), nstest.New(t, "server")
	ovs := sw.NewOVS(t)
	ovs.Vsctl(t, "--no-wait", "set", "Open_vSwitch", ".", "other_config:userspace-tso-enable=true")
	socket := ovs.Bridge(t, "s1", "OpenFlow15")
	for i, ns := range []*nstest.NS{server, client} {
		p := fmt.Sprintf("p%d", i+1)
		nstest.Veth(t, sw, p, ns, "up")
		ovs.Vsctl(t, "add-port", "s1", p, "--", "set", "interface", p, fmt.Sprintf("ofport_request=%d", i+1))
		ns.Run(t, "ip", "-6", "neigh", "replace", "fe80::1", "lladdr", routerMAC.String(), "dev", "up", "nud", "permanent")
		ns.Route(t, "::/0", "fe80::1", "up")
	}
	src := space.Locator(0x205).Addr(1<<63 | 5)
	client.Sysctl(t, "net/ipv6/auto_flowlabels", "0") // a label is a first packet's retry count
	client.Addr(t, "up", src.String()+"/128")
	tables := empty(kinds["Open vSwitch"])
	r := plan.Rules{Services: []plan.ServiceRule{{Service: serviceID(0), Instances: 3}}}
	reach := func(l sid.Locator, ns *nstest.NS, port string) {
		r.Routes = append(r.Routes, plan.Route{Prefix: l.Prefix(), Port: port, MAC: [6]byte(ns.MAC(t, "up"))})
	}
	reach(space.Locator(0x205), client, "p2")
	name := space.ServiceAddr(serviceID(0))
	var back []Flow // as the client's edge would have it: answers come from the service
	for i, x := range targets(1, 2, 3) {
		reach(x.Locator, server, "p1")
		at := x.Locator.Addr(sid.Low(name))
		server.Addr(t, "up", at.String()+"/128")
		back = append(back, Flow{ID: uint32(i), First: true, Match: ofp.Match{ipv6, ofp.Addr(ofp.IPv6Src, at)},
			Instructions: []ofp.Instruction{ofp.ApplyActions{Actions: []ofp.Action{ofp.SetField{OXM: ofp.Addr(ofp.IPv6Src, name)}}}, ofp.GotoTable{Table: DefaultFirst}}})
	}
	for _, p := range []sid.Proto{sid.TCP, sid.UDP} {
		r.Resolutions = append(r.Resolutions, plan.Resolution{Triple: triple(0, p, 80), Targets: targets(1, 2, 3)})
	}
	tables.Apply(r)
	tables.Own(16, back)
	dial(t, ovs, socket).tell(t, tables.Drain())

	echoes(t, client, src.String(), server.Listen(t, "tcp6", "[::]:80"), net.JoinHostPort(name.String(), "80"))
	datagrams(t, client, src.String(), server.ListenPacket(t, "udp6", "[::]:80"), net.JoinHostPort(name.String(), "80"))
	for _, ns := range []*nstest.NS{client, server} {
		for file, row := range map[string]string{"/proc/net/snmp": "Tcp:", "/proc/net/snmp6": "Udp6InCsumErrors"} {
			for line := range strings.Lines(ns.Run(t, "cat", file)) {
				words := strings.Fields(line)
				wrong := words[0] == row && words[len(words)-1] != "0" && words[len(words)-1] != "InCsumErrors"
				if wrong {
					t.Errorf("%s: %s: %s", ns.Name, file, line)
				}
			}
		}
	}
}

// from opens a connection from an address of the namespace.
func from(t *testing.T, ns *nstest.NS, network, src, dst string) (c net.Conn) {
	t.Helper()
	d := net.Dialer{Timeout: nstest.Deadline, LocalAddr: &net.TCPAddr{IP: net.ParseIP(src)}}
	if network == "udp6" {
		d.LocalAddr = &net.UDPAddr{IP: net.ParseIP(src)}
	}
	ns.Do(func() {
		var err error
		if c, err = d.Dial(network, dst); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(nstest.Deadline))
	return c
}

// echoes sends megabytes there and back.
func echoes(t *testing.T, ns *nstest.NS, src string, l net.Listener, dst string) {
	t.Helper()
	done := make(chan struct{})
	go func() { // ends when the listener or its connection does
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		io.Copy(c, c)
	}()
	c := from(t, ns, "tcp6", src, dst)
	sent := bytes.Repeat([]byte("scaffold"), 1<<20)
	go func() { // ends when c does
		c.Write(sent)
		c.(*net.TCPConn).CloseWrite()
	}()
	got := sha256.New()
	n, err := io.Copy(got, c)
	if want := sha256.Sum256(sent); err != nil || !bytes.Equal(got.Sum(nil), want[:]) {
		t.Errorf("%d bytes came back of %d: %v", n, len(sent), err)
	}
	<-done
}

// datagrams sends some, one after the other.
func datagrams(t *testing.T, ns *nstest.NS, src string, l net.PacketConn, dst string) {
	t.Helper()
	l.SetDeadline(time.Now().Add(nstest.Deadline))
	c, buf := from(t, ns, "udp6", src, dst), make([]byte, 2000)
	for i := range 200 {
		sent := bytes.Repeat([]byte{byte(i)}, 1+7*i)
		c.Write(sent)
		if n, _, err := l.ReadFrom(buf); err != nil || !bytes.Equal(buf[:n], sent) {
			t.Fatalf("datagram %d of %d bytes: %d bytes, %v", i, len(sent), n, err)
		}
	}
}
