package agent

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/peering"
	"scaffold.dev/scaffold/internal/boost/trunk"
	"scaffold.dev/scaffold/internal/tests/safety"
)

func addresses(text string) (list []netip.AddrPort) {
	for _, a := range strings.Fields(text) {
		list = append(list, netip.AddrPortFrom(netip.MustParseAddr(a), 23731))
	}
	return list
}

// Both agents come to the same paths, whoever asks: no link is that of two paths, unless one agent has fewer.
func TestPathsAreTheFirstWithTheFirst(t *testing.T) {
	for _, c := range []struct{ own, others, want string }{
		{"192.0.2.1", "198.51.100.1", "192.0.2.1-198.51.100.1"},
		{"192.0.2.1 192.0.2.2", "198.51.100.1 198.51.100.2", "192.0.2.1-198.51.100.1 192.0.2.2-198.51.100.2"},
		{"192.0.2.1", "198.51.100.1 198.51.100.2", "192.0.2.1-198.51.100.1 192.0.2.1-198.51.100.2"},
		{"192.0.2.1 192.0.2.2 192.0.2.3", "198.51.100.1 198.51.100.2", "192.0.2.1-198.51.100.1 192.0.2.2-198.51.100.2 192.0.2.3-198.51.100.1"},
		{"192.0.2.1 2001:db8::1", "2001:db8::2 198.51.100.1", "192.0.2.1-198.51.100.1 2001:db8::1-2001:db8::2"},
		{"2001:db8::1 192.0.2.1 192.0.2.2", "198.51.100.1 198.51.100.2", "192.0.2.1-198.51.100.1 192.0.2.2-198.51.100.2"},
		{"192.0.2.1 2001:db8::1", "198.51.100.1", "192.0.2.1-198.51.100.1"},
		{"192.0.2.1", "2001:db8::2", ""},
	} {
		var got []string
		back := map[string]bool{}
		for _, p := range pairs(addresses(c.own), addresses(c.others)) {
			got = append(got, p[0].Addr().String()+"-"+p[1].Addr().String())
		}
		for _, p := range pairs(addresses(c.others), addresses(c.own)) {
			back[p[1].Addr().String()+"-"+p[0].Addr().String()] = true
		}
		if strings.Join(got, " ") != c.want || len(back) != len(got) {
			t.Errorf("%s and %s: %v, want %s; the other way %v", c.own, c.others, got, c.want, back)
		}
		for _, p := range got {
			if !back[p] {
				t.Errorf("%s and %s: path %s is none for the other agent, which has %v", c.own, c.others, p, back)
			}
		}
	}
}

// has gives an agent an address for each path, all in 127.0.0.0/8.
func (n *network) has(t *testing.T, name string, at []string, change func(*Config)) *site {
	var more []netip.AddrPort
	s := n.agent(name, func(c *Config) {
		c.Doors[0].Close()
		c.Doors, c.Addresses = nil, nil
		for _, a := range at {
			l, err := net.Listen("tcp", a+":0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			c.Doors = append(c.Doors, l)
			c.Addresses = append(c.Addresses, Address{At: netip.MustParseAddrPort(l.Addr().String())})
			more = append(more, netip.MustParseAddrPort(l.Addr().String()))
		}
		c.Strategy, c.Silence = "", time.Second
		change(c)
	})
	s.at = Peer{Name: name, Door: more[0], More: more[1:]}
	return s
}

// A bundle is the paths between two agents, by the address of the one that dials.
type bundle map[netip.Addr]*path

func (b bundle) dial(ctx context.Context, from netip.Addr, to netip.AddrPort) (*net.TCPConn, error) {
	return b[from].dial(ctx, from, to)
}

// overTwo are two agents with two paths between them, whose lane is from x to y, or back.
func overTwo(t *testing.T, near string) (x, y *site, paths bundle) {
	n := newNetwork(t)
	paths = bundle{netip.MustParseAddr("127.0.1.1"): {}, netip.MustParseAddr("127.0.1.2"): {}}
	x = n.has(t, "x", []string{"127.0.1.1", "127.0.1.2"}, func(c *Config) { c.Dial = paths.dial })
	y = n.has(t, "y", []string{"127.0.2.1", "127.0.2.2"}, func(*Config) {})
	lane := Lane{Number: 5, Client: clients, Server: servers, Port: 80, Near: []string{near}, Far: []string{map[string]string{"x": "y", "y": "x"}[near]}}
	y.tell(t, []Peer{x.at}, lane)
	x.tell(t, []Peer{y.at}, lane)
	x.upPaths(t, "y", 2)
	y.upPaths(t, "x", 2)
	return x, y, paths
}

// upPaths waits until so many paths to another agent have both their connections.
func (s *site) upPaths(t *testing.T, other string, want int) trunk.Status {
	t.Helper()
	for end := time.Now().Add(within); ; {
		status, up := s.Trunks()[other], 0
		for _, p := range status.Paths {
			if p.Up && p.Connections == 2 {
				up++
			}
		}
		if up == want {
			return status
		}
		if time.Now().After(end) {
			t.Fatalf("%s has not %d paths: %+v", s.Name, want, status)
		}
	}
}

// loses waits until an agent says that a path is lost.
func (s *site) loses(t *testing.T) {
	t.Helper()
	end := time.After(within)
	for {
		select {
		case e := <-s.events:
			if e.Path != nil && !e.Path.Up {
				return
			}
		case <-end:
			t.Fatalf("%s has not said that a path is lost: %+v", s.Name, s.Trunks())
		}
	}
}

// One connection goes over both paths. Where one of them carries nothing any more, or is cut, it goes on over the other one, all
// bytes arrive, and both agents say which path is lost, and when it is back. Its control connection is gone, too.
func TestAStreamOutlivesOneOfItsPaths(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for _, near := range []string{"x", "y"} {
		for i, lost := range []string{"127.0.1.1", "127.0.1.2"} {
			t.Run(fmt.Sprint("path ", i+1, " is lost under a stream from ", near), func(t *testing.T) {
				x, y, paths := overTwo(t, near)
				from, to := x, y
				if near == "y" {
					from, to = y, x
				}
				way := paths[netip.MustParseAddr(lost)]
				times := 0
				stream(t, from, to, 2, func() {
					if times++; times == 2 { // the second time all its connections end at once
						way.cut()
						x.loses(t)
						x.upPaths(t, "y", 2)
						return
					}
					again := way.stop()
					await(t, x, peering.ErrSilent)
					await(t, y, peering.ErrSilent)
					x.upPaths(t, "y", 1)
					again()
					x.upPaths(t, "y", 2)
					y.upPaths(t, "x", 2)
				})
				sent, received := from.Trunks()[to.Name].Paths, to.Trunks()[from.Name].Paths
				for i := range 2 {
					if sent[i].Sent == 0 || received[i].Received == 0 {
						t.Errorf("a path has carried nothing: %+v, %+v", sent, received)
					}
				}
			})
		}
	}
}

// An agent of before knows one address of each: it has one path, and nothing else is tried.
func TestAnAgentOfBeforeHasOnePath(t *testing.T) {
	n := newNetwork(t)
	x := n.has(t, "x", []string{"127.0.1.1", "127.0.1.2"}, func(c *Config) { c.Dial = (&path{}).dial })
	y := n.has(t, "y", []string{"127.0.2.1"}, func(*Config) {})
	at, known := y.at, Peer{Name: "x", Door: x.at.Door} // what y can be told of x
	at.Former = true
	y.tell(t, []Peer{known})
	x.tell(t, []Peer{at})
	if got := x.upPaths(t, "y", 1); len(got.Paths) != 1 {
		t.Errorf("%+v", got.Paths)
	}
	if got := y.upPaths(t, "x", 1); len(got.Paths) != 1 {
		t.Errorf("%+v", got.Paths)
	}
}

// Paths come and go as the agents are told, under the trunk that there is.
func TestPathsComeAndGo(t *testing.T) {
	x, y, _ := overTwo(t, "x")
	x.mu.Lock()
	before := x.peers["y"]
	x.mu.Unlock()
	one, other := x.at, y.at
	one.More, other.More = nil, nil
	lane := Lane{Number: 5, Client: clients, Server: servers, Port: 80, Near: []string{"x"}, Far: []string{"y"}}
	stream(t, x, y, 2, func() {
		x.tell(t, []Peer{{Name: "y", Door: other.Door, Former: true}}, lane)
		y.tell(t, []Peer{{Name: "x", Door: one.Door, Former: true}}, lane)
		x.upPaths(t, "y", 1)
		y.upPaths(t, "x", 1)
		x.tell(t, []Peer{y.at}, lane)
		y.tell(t, []Peer{x.at}, lane)
		x.upPaths(t, "y", 2)
		y.upPaths(t, "x", 2)
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.peers["y"] != before {
		t.Error("another trunk was made")
	}
}

// Agents that have no family in common say so.
func TestWithoutACommonFamilyThereIsNoPath(t *testing.T) {
	n := newNetwork(t)
	x := n.agent("x", nil)
	x.tell(t, []Peer{{Name: "y", Door: netip.MustParseAddrPort("[::1]:9")}})
	await(t, x, errNoWay)
}
