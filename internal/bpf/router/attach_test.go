package router

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/sid"
)

// A wire is a client, a router with the program on its port, and a server behind it.
type wire struct {
	router, client, server *nstest.NS
	ifindex                int
}

func newWire(t *testing.T) *wire {
	w := &wire{router: nstest.New(t, "router"), client: nstest.New(t, "client"), server: nstest.New(t, "server")}
	nstest.Veth(t, w.router, "to-client", w.client, "up")
	nstest.Veth(t, w.router, "to-server", w.server, "up")
	w.router.Forward(t)
	w.router.Route(t, host(0).Prefix().String(), w.server.LinkLocal(t, "up").String(), "to-server")
	w.ifindex = w.router.Index(t, "to-client")
	w.client.Sysctl(t, "net/ipv6/auto_flowlabels", "0") // a host's edge would write the label of first packets
	return w
}

// in opens a resolver in the router's namespace, attached to the client's port.
func (w *wire) in(t *testing.T, cfg Config) (r *Resolver) {
	t.Helper()
	cfg.Space = space
	w.router.Do(func() {
		var err error
		if r, err = Open(cfg); err != nil {
			t.Fatal(err)
		}
		must(t, r.Attach(w.ifindex), r.Attach(w.ifindex))
	})
	return r
}

func (w *wire) close(t *testing.T, r *Resolver, keep bool) {
	t.Helper()
	w.router.Do(func() { must(t, r.Close(keep)) })
}

func (w *wire) send(t *testing.T, f *nstest.Frames, p bpftest.Packet) {
	t.Helper()
	head := append(append([]byte(nil), w.router.MAC(t, "to-client")...), w.client.MAC(t, "up")...)
	f.Send(t, append(append(head, 0x86, 0xdd), p.Bytes()...))
}

// passes sends a SYN and waits for it at the server.
func (w *wire) passes(t *testing.T, what string, n uint64) {
	t.Helper()
	from, at := w.client.Frames(t, "up"), w.server.Frames(t, "up")
	src := space.Locator(0x201).Addr(uint64(sid.NewSocketID(n)))
	w.send(t, from, syn(src, space.ServiceAddr(web), 80))
	at.Next(t, "SYN "+what, func(f []byte) bool {
		s, d, ok := addrs(f)
		return ok && s == src && d == host(0).Addr(uint64(web.Suffix)) && bpftest.ChecksumOK(f[14:])
	})
}

func addrs(frame []byte) (src, dst netip.Addr, ok bool) {
	if len(frame) < 54 || frame[12] != 0x86 || frame[13] != 0xdd {
		return src, dst, false
	}
	src, dst = bpftest.Addrs(frame[14:])
	return src, dst, true
}

func serve(t *testing.T, r *Resolver) {
	must(t, r.SetLocator(own), r.SetService(web, Service{Instances: 1}), r.SetTable(webTCP, targets(1)), r.Commit(3))
}

// TestEverySYNIsAnswered: a thousand at once, each with its own ICMPv6 packet. The kernel's own errors
// would come at a rate of about one a second.
func TestEverySYNIsAnswered(t *testing.T) {
	w := newWire(t)
	r := w.in(t, Config{})
	defer w.close(t, r, false)
	serve(t, r)
	from := w.client.Frames(t, "up")
	const n = 1000
	want := map[netip.Addr]byte{}
	for i := range n {
		p := syn(space.Locator(0x201).Addr(uint64(sid.NewSocketID(uint64(i)))), space.ServiceAddr(web), 81)
		code := byte(4)
		if i%2 == 0 {
			p.Dst, code = space.ServiceAddr(sid.ServiceID{SS: 7, Suffix: 0x10000}), 0
		}
		want[p.Src] = code
		w.send(t, from, p)
	}
	for range n {
		from.Next(t, fmt.Sprintf("ICMPv6 answer, %d are missing; counters %v", len(want), counters(t, r)), func(f []byte) bool {
			_, dst, ok := addrs(f)
			code, waiting := want[dst]
			if !ok || !waiting || f[20] != bpftest.ICMPv6 || f[54] != 1 {
				return false
			}
			if f[55] != code || !bpftest.ChecksumOK(f[14:]) {
				t.Errorf("%v got %x, want code %d and a right checksum", dst, f, code)
			}
			delete(want, dst)
			return true
		})
	}
}

func counters(t *testing.T, r *Resolver) map[string]uint64 {
	c, err := r.Counters()
	must(t, err)
	return c
}

// TestKernelTakesTheRefusal: what a connect() gets, with the kernel's own TCP, whoever on the way is left
// to complete the SYN's checksum.
func TestKernelTakesTheRefusal(t *testing.T) {
	for _, offload := range []string{"on", "off"} {
		t.Run("offload="+offload, func(t *testing.T) {
			w := newWire(t)
			w.router.Run(t, "ethtool", "-K", "to-client", "tx", offload)
			r := w.in(t, Config{})
			defer w.close(t, r, false)
			serve(t, r)
			w.dials(t, r, web, "connection refused")
			w.dials(t, r, sid.ServiceID{SS: 7, Suffix: 0x10000}, "network is unreachable")
		})
	}
}

// dials connects from the client's kernel to port 81 of the service.
func (w *wire) dials(t *testing.T, r *Resolver, to sid.ServiceID, want string) {
	t.Helper()
	src := space.Locator(0x201).Addr(uint64(sid.NewSocketID(uint64(to.Suffix))))
	w.client.Addr(t, "up", src.String()+"/128")
	w.client.Run(t, "ip", "-6", "route", "replace", "fd00::/8", "via", w.router.LinkLocal(t, "to-client").String(), "dev", "up")
	conn, err := w.client.Dial("tcp6", fmt.Sprintf("[%s]:81", space.ServiceAddr(to)))
	if err == nil {
		conn.Close()
	}
	if err == nil || !endsWith(err.Error(), want) {
		t.Errorf("connect to %v: %v, want %s; counters %v\n%s", to, err, want, counters(t, r), w.client.Run(t, "grep", "Icmp6In", "/proc/self/net/snmp6"))
	}
}

func endsWith(s, end string) bool { return len(s) >= len(end) && s[len(s)-len(end):] == end }

// TestKilledDaemonForgetsNothing: Close(keep) leaves what a kill leaves, the pins.
func TestKilledDaemonForgetsNothing(t *testing.T) {
	safety.Test(t, safety.Record)
	for _, noTCX := range []bool{false, true} {
		t.Run(fmt.Sprintf("clsact=%v", noTCX), func(t *testing.T) {
			w := newWire(t)
			cfg := Config{Pin: filepath.Join(nstest.BPFFS, "router-adopt"), NoTCX: noTCX}
			first := w.in(t, cfg)
			serve(t, first)
			must(t, first.SetRedirect(host(8), host(9)))
			w.passes(t, "with the daemon", 1)
			w.close(t, first, true)
			w.passes(t, "without a daemon", 2)

			second := w.in(t, cfg)
			if !second.Adopted() || second.Generation() != 3 || second.Locator() != own || counters(t, second)["resolved"] < 2 {
				t.Errorf("adopted %v, generation %d, locator %v, counters %v", second.Adopted(), second.Generation(), second.Locator(), counters(t, second))
			}
			before := second.Writes()
			serve(t, second)
			must(t, second.SetRedirect(host(8), host(9)))
			if n := second.Writes() - before; n != 0 {
				t.Errorf("the rules that it has cost %d writes", n)
			}
			w.passes(t, "with the second daemon", 3)
			w.close(t, second, false)
			if pins, _ := os.ReadDir(cfg.Pin); len(pins) != 0 {
				t.Errorf("pins left: %v", pins)
			}
			if out := w.router.Run(t, "tc", "filter", "show", "dev", "to-client", "ingress"); out != "" {
				t.Errorf("filters left: %s", out)
			}
		})
	}
}

// TestPinsOfADeadNamespaceAreSwept, also where another namespace got its number.
func TestPinsOfADeadNamespaceAreSwept(t *testing.T) {
	for _, clsact := range []bool{false, true} {
		t.Run(fmt.Sprintf("clsact=%v", clsact), func(t *testing.T) {
			w := newWire(t)
			cfg := Config{Pin: filepath.Join(nstest.BPFFS, fmt.Sprintf("router-dead-%v", clsact)), NoTCX: clsact}
			r := w.in(t, cfg)
			serve(t, r)
			w.close(t, r, true)
			must(t, Sweep(cfg.Pin))
			if _, err := os.Stat(cfg.Pin); err != nil {
				t.Fatalf("a living router's pins were swept: %v", err)
			}
			w.router.Run(t, "ip", "link", "del", "to-client")
			fresh := open(t, cfg)
			if fresh.Adopted() {
				t.Error("the rules of a router without interfaces were adopted")
			}
			must(t, Sweep(cfg.Pin))
			if _, err := os.Stat(cfg.Pin); err != nil {
				t.Errorf("the pins of a router that has no interface yet were swept: %v", err)
			}
			must(t, fresh.Close(true))
			must(t, Sweep(cfg.Pin))
			if _, err := os.Stat(cfg.Pin); !os.IsNotExist(err) {
				t.Errorf("a router without interfaces ended, and its pins are left: %v", err)
			}
		})
	}
}

// TestRulesOfAnotherNetworkAreForgotten when the controller says which network it is.
func TestRulesOfAnotherNetworkAreForgotten(t *testing.T) {
	r := ready(t)
	other := space
	other.AS = netip.MustParsePrefix("fd5d:0:2::/48")
	must(t, r.SetSpace(other))
	if u, err := r.Usage(); err != nil || u.Services != 0 || u.Instances != 0 || r.Generation() != 0 {
		t.Errorf("%+v, %v, generation %d", u, err, r.Generation())
	}
	if res := run(t, r, syn(from, space.ServiceAddr(web), 80).Bytes()); res.Verdict != bpftest.Next {
		t.Errorf("%v, want the packet untouched until the next commit", res)
	}
}
