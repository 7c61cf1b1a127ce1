package hostd

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/agent"
	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// dnsDaemon is as much of a daemon as names needs, with a controller on a Unix socket.
type dnsDaemon struct {
	*daemon
	stop context.CancelFunc // of the controller
	addr string
}

func newDNS(t *testing.T, dir string, controller bool) *dnsDaemon {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	d := &daemon{cfg: Config{DNS: []string{"127.0.0.1:0"}}, log: slog.New(slog.DiscardHandler), ctx: ctx, metrics: newMetrics(), credentials: new(agent.Credentials)}
	var err error
	if d.store, err = openStore(dir); err != nil {
		t.Fatal(err)
	}
	d.control = newControl(d)
	d.names = newNames(d)
	t.Cleanup(d.names.close)
	dd := &dnsDaemon{daemon: d, stop: func() {}}
	if controller {
		socket := "unix:" + t.TempDir() + "/c.sock"
		l, err := api.Listen(socket)
		if err != nil {
			t.Fatal(err)
		}
		f := &fakeController{reports: make(chan *apiv1.HostReport, 8)}
		done := make(chan struct{})
		go func() { defer close(done); f.serve(l) }()
		dd.stop = func() { f.mu.Lock(); f.stop(); f.mu.Unlock(); <-done }
		d.control.dial(socket)
	}
	return dd
}

func (d *dnsDaemon) ask(name string, kind uint16) *dns.Msg {
	return d.names.answer(new(dns.Msg).SetQuestion(dns.Fqdn(name), kind), false)
}

func TestDNSAnswers(t *testing.T) {
	d := newDNS(t, t.TempDir(), true)
	reverse, _ := dns.ReverseAddr(webAddr.String())
	unknown, _ := dns.ReverseAddr("fd5c:0:0:9::9999:9999")
	foreign, _ := dns.ReverseAddr("2001:db8::1")
	for _, c := range []struct {
		name  string
		kind  uint16
		rcode int
		want  string
	}{
		{"web.svc", dns.TypeAAAA, dns.RcodeSuccess, webAddr.String()},
		{"WEB.Svc", dns.TypeAAAA, dns.RcodeSuccess, webAddr.String()},
		{"web.svc", dns.TypeA, dns.RcodeSuccess, ""},
		{"web.svc", dns.TypeMX, dns.RcodeSuccess, ""},
		{"svc", dns.TypeAAAA, dns.RcodeSuccess, ""},
		{"nobody.svc", dns.TypeAAAA, dns.RcodeNameError, ""},
		{"nobody.svc", dns.TypeA, dns.RcodeNameError, ""},
		{strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + ".svc", dns.TypeAAAA, dns.RcodeNameError, ""},
		{reverse, dns.TypePTR, dns.RcodeSuccess, "web.svc."},
		{unknown, dns.TypePTR, dns.RcodeNameError, ""},
		{foreign, dns.TypePTR, dns.RcodeRefused, ""},
		{"example.org", dns.TypeAAAA, dns.RcodeRefused, ""},
	} {
		r := d.ask(c.name, c.kind)
		if r.Rcode != c.rcode {
			t.Errorf("%s %s: %s, want %s", c.name, dns.TypeToString[c.kind], dns.RcodeToString[r.Rcode], dns.RcodeToString[c.rcode])
		}
		got := ""
		if len(r.Answer) > 0 {
			got = strings.Fields(r.Answer[0].String())[4]
			if ttl := r.Answer[0].Header().Ttl; ttl != 7 {
				t.Errorf("%s: TTL %d, the controller says 7", c.name, ttl)
			}
		}
		if got != c.want {
			t.Errorf("%s %s: %q, want %q", c.name, dns.TypeToString[c.kind], got, c.want)
		}
	}
}

func TestDNSWithoutController(t *testing.T) {
	d := newDNS(t, t.TempDir(), false)
	if r := d.ask("web.svc", dns.TypeAAAA); r.Rcode != dns.RcodeServerFailure || r.Authoritative {
		t.Errorf("never reached: %v", r)
	}
}

// What was resolved once is answered while the controller is away, also by the next daemon.
func TestDNSAnswersStaleNames(t *testing.T) {
	dir := t.TempDir()
	d := newDNS(t, dir, true)
	d.ask("web.svc", dns.TypeAAAA)
	d.stop()
	d.names.mu.Lock()
	d.names.known["web"] = expired(d.names.known["web"])
	d.names.mu.Unlock()
	d.names.save()
	for _, d := range []*dnsDaemon{d, newDNS(t, dir, false)} {
		r := d.ask("web.svc", dns.TypeAAAA)
		if len(r.Answer) != 1 || r.Answer[0].Header().Ttl != staleTTL {
			t.Errorf("stale answer: %v", r)
		}
		if r := d.ask("other.svc", dns.TypeAAAA); r.Rcode != dns.RcodeServerFailure {
			t.Errorf("a name that nobody knows: %v", r)
		}
	}
}

func expired(a name) name { a.Until = a.Until.Add(-1e12); return a }

// Over a real socket: names that are too long for DNS get a format error, not silence.
func TestDNSOverSockets(t *testing.T) {
	d := newDNS(t, t.TempDir(), true)
	d.names.serve()
	udp, tcp := d.names.servers[0].PacketConn.LocalAddr().String(), d.names.servers[1].Listener.Addr().String()
	for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
		c := dns.Client{Net: network}
		r, _, err := c.Exchange(new(dns.Msg).SetQuestion("web.svc.", dns.TypeAAAA), addr)
		if err != nil || len(r.Answer) != 1 {
			t.Errorf("%s: %v %v", network, r, err)
		}
	}
}

func TestReverseReadsWhatReverseAddrWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "addr")))
		q, err := dns.ReverseAddr(a.String())
		if a.Is4In6() || err != nil {
			return
		}
		if got, ok := reverse(q); !ok || got != a {
			t.Fatalf("%v -> %s -> %v %v", a, q, got, ok)
		}
	})
}

func FuzzReverse(f *testing.F) {
	f.Add("1.0.0.0.ip6.arpa.")
	f.Fuzz(func(t *testing.T, q string) { reverse(q) })
}
