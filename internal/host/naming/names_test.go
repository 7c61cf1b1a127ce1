package naming

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/miekg/dns"
	"pgregory.net/rapid"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
	"scaffold.dev/scaffold/sid"
)

var webAddr = sid.DefaultSpace().ServiceAddr(sid.ServiceID{SS: 1, Suffix: 0x00c0ffee00c0ffee})

// A directory is a controller that knows the service web.
type directory struct {
	apiv1connect.UnimplementedAgentHandler
}

func (directory) Resolve(_ context.Context, r *connect.Request[apiv1.ResolveRequest]) (*connect.Response[apiv1.ResolveResponse], error) {
	if r.Msg.Name == "web" || r.Msg.Address == webAddr.String() {
		return connect.NewResponse(&apiv1.ResolveResponse{Name: "web", Sid: "1", Address: webAddr.String(), TtlSeconds: 7}), nil
	}
	return nil, connect.NewError(connect.CodeNotFound, errors.New("no such name"))
}

// RoundTrip answers without a network.
func (d directory) RoundTrip(r *http.Request) (*http.Response, error) {
	_, handler := apiv1connect.NewAgentHandler(d)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// silent is a controller that takes questions, and nobody reads them.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// away is one that nobody reaches.
type away struct{}

func (away) RoundTrip(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }

// A dnsHost is names, the controller that they ask, and what they have saved.
type dnsHost struct {
	names      *Names
	controller *http.Client
}

func newDNS(t *testing.T, disk *Saved, controller http.RoundTripper) *dnsHost {
	t.Helper()
	d := &dnsHost{}
	if controller != nil {
		d.controller = &http.Client{Transport: controller}
	}
	d.names = New(t.Context(), Config{
		Log: slog.New(slog.DiscardHandler), Listen: []string{"127.0.0.1:0"}, Answered: func(string) {},
		Controller: func() *http.Client { return d.controller },
		Load:       func(s *Saved) bool { *s = *disk; return true },
		Save:       func(s Saved) error { *disk = s; return nil },
		Learn:      func(context.Context, netip.Addr, *apiv1.Policy) {},
	})
	t.Cleanup(d.names.Close)
	return d
}

func (d *dnsHost) ask(name string, kind uint16) *dns.Msg {
	return d.names.answer(new(dns.Msg).SetQuestion(dns.Fqdn(name), kind), false)
}

func TestDNSAnswers(t *testing.T) {
	d := newDNS(t, &Saved{}, directory{})
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
	d := newDNS(t, &Saved{}, nil)
	if r := d.ask("web.svc", dns.TypeAAAA); r.Rcode != dns.RcodeServerFailure || r.Authoritative {
		t.Errorf("never reached: %v", r)
	}
}

// What was resolved once is answered while the controller is away, also by the next daemon.
func TestDNSAnswersStaleNames(t *testing.T) {
	disk := &Saved{}
	d := newDNS(t, disk, directory{})
	d.ask("web.svc", dns.TypeAAAA)
	d.controller = &http.Client{Transport: away{}}
	d.names.mu.Lock()
	d.names.known["web"] = expired(d.names.known["web"])
	d.names.mu.Unlock()
	d.names.save()
	for _, d := range []*dnsHost{d, newDNS(t, disk, nil)} {
		r := d.ask("web.svc", dns.TypeAAAA)
		if len(r.Answer) != 1 || r.Answer[0].Header().Ttl != staleTTL {
			t.Errorf("stale answer: %v", r)
		}
		if r := d.ask("other.svc", dns.TypeAAAA); r.Rcode != dns.RcodeServerFailure {
			t.Errorf("a name that nobody knows: %v", r)
		}
	}
}

// TestDNSWaitsForNoSilentController: behind OpenFlow switches the end of a controller is silence, and every name that was
// known took two seconds.
func TestDNSWaitsForNoSilentController(t *testing.T) {
	d := newDNS(t, &Saved{}, directory{})
	d.ask("web.svc", dns.TypeAAAA)
	d.controller = &http.Client{Transport: silent{}}
	for range 3 {
		d.names.mu.Lock()
		d.names.known["web"] = expired(d.names.known["web"])
		d.names.mu.Unlock()
		if r := d.ask("web.svc", dns.TypeAAAA); len(r.Answer) != 1 || r.Answer[0].Header().Ttl != staleTTL {
			t.Errorf("answer: %v", r)
		}
		d.names.mu.Lock()
		if d.names.awaited["web"] == nil {
			t.Error("the controller was waited for, whose name was known")
		}
		d.names.mu.Unlock()
	}
}

func expired(a Name) Name { a.Until = a.Until.Add(-1e12); return a }

// Over a real socket: names that are too long for DNS get a format error, not silence.
func TestDNSOverSockets(t *testing.T) {
	d := newDNS(t, &Saved{}, directory{})
	d.names.Serve()
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

// A program that asks for names that nobody has pushes out none that there is.
func TestMissesPushOutNoName(t *testing.T) {
	d := newDNS(t, &Saved{}, nil)
	d.names.keep("web.svc.", Name{Name: "web.svc.", Address: webAddr, Until: time.Now().Add(time.Hour)})
	for i := range 3 * maxNames {
		d.names.keep(fmt.Sprintf("x%d.svc.", i), Name{Missing: true, Until: time.Now().Add(time.Hour)})
	}
	if len(d.names.misses) > maxMisses || len(d.names.known) != 1 {
		t.Errorf("%d misses and %d names are kept, want at most %d, and 1", len(d.names.misses), len(d.names.known), maxMisses)
	}
	if a, err := d.names.LookUp(t.Context(), "web.svc.", nil); err != nil || a.Address != webAddr {
		t.Errorf("web.svc is %v, %v", a, err)
	}
	if _, err := d.names.LookUp(t.Context(), fmt.Sprintf("x%d.svc.", 3*maxNames-1), nil); !errors.Is(err, ErrUnknown) {
		t.Errorf("a miss is not remembered: %v", err)
	}
	d.names.keep("web.svc.", Name{Missing: true, Until: time.Now().Add(time.Hour)}) // it is gone
	if _, err := d.names.LookUp(t.Context(), "web.svc.", nil); !errors.Is(err, ErrUnknown) {
		t.Errorf("a name that is gone: %v", err)
	}
	d.names.keep("web.svc.", Name{Name: "web.svc.", Address: webAddr, Until: time.Now().Add(time.Hour)}) // and comes back
	if a, err := d.names.LookUp(t.Context(), "web.svc.", nil); err != nil || a.Address != webAddr {
		t.Errorf("a name that came back: %v, %v", a, err)
	}
}
