package hostd

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

var (
	space   = sid.DefaultSpace()
	webID   = sid.ServiceID{SS: 1, Suffix: 0x00c0ffee00c0ffee}
	webAddr = space.ServiceAddr(webID)
)

// A fakeController answers hosts: it gives the one host of a test a locator at each router, and tells
// what it reports.
type fakeController struct {
	apiv1connect.UnimplementedAgentHandler
	apiv1connect.UnimplementedAdminHandler
	reports chan *apiv1.HostReport
	orders  chan *apiv1.HostOrder // extra ones for the session

	mu    sync.Mutex
	ready string
	key   ed25519.PrivateKey // of a network with trust: keys
	host  ed25519.PublicKey

	certified int64
	refuse    string // why no place is given for now
	stop      context.CancelFunc
}

// The locators at the routers r1 and r2.
const (
	at1 = "fd5d:0:1:101::/64"
	at2 = "fd5d:0:1:201::/64"
)

func (f *fakeController) Host(ctx context.Context, s *connect.BidiStream[apiv1.HostReport, apiv1.HostOrder]) error {
	var sending sync.Mutex
	var sender sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer func() { // who has returned must not send: the connection writes what ends the stream
		cancel()
		sender.Wait()
	}()
	sender.Go(func() {
		for {
			select {
			case o := <-f.orders:
				sending.Lock()
				s.Send(o) // the test waits for what it does
				sending.Unlock()
			case <-ctx.Done():
				return
			}
		}
	})
	for {
		r, err := s.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if r.GetLoad() == nil {
			f.reports <- r
		}
		sending.Lock()
		err = f.react(r, s)
		sending.Unlock()
		if err != nil {
			return err
		}
	}
}

func (f *fakeController) react(r *apiv1.HostReport, s *connect.BidiStream[apiv1.HostReport, apiv1.HostOrder]) error {
	if j := r.GetJoin(); j != nil {
		if err := s.Send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Joined{Joined: f.join(j)}}); err != nil {
			return err
		}
		return s.Send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Attached{Attached: f.attach(&apiv1.Attach{Attachment: j.Attachment}, j.Key)}})
	}
	if a := r.GetAttach(); a != nil {
		return s.Send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Attached{Attached: f.attach(a, nil)}})
	}
	entries := append(r.GetSnapshot().GetEntries(), r.GetDelta().GetEntries()...)
	for _, e := range entries {
		if e.Gone || sid.Suffix(e.Suffix) != webID.Suffix {
			continue
		}
		f.mu.Lock()
		ready := f.ready
		f.mu.Unlock()
		err := s.Send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Services{Services: &apiv1.ServicePolicies{Entries: []*apiv1.ServicePolicy{
			{Name: "web", Ss: e.Ss, Suffix: e.Suffix, Policy: &apiv1.Policy{Ready: ready}},
		}}}})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *fakeController) join(j *apiv1.Join) *apiv1.Joined {
	first := f.attach(&apiv1.Attach{Attachment: j.Attachment}, j.Key)
	f.mu.Lock()
	f.host = j.Key
	key := f.key
	f.mu.Unlock()
	r := &apiv1.Joined{Network: "test", Locator: first.Locator, Domain: "svc", Routers: []string{"fd5d:0:1:100::/64"}, Certificate: first.Certificate}
	if key != nil {
		r.Trust, r.NetworkKey = "keys", key.Public().(ed25519.PublicKey)
	}
	for _, o := range j.Others {
		r.Others = append(r.Others, f.attach(o, j.Key))
	}
	return r
}

func (f *fakeController) attach(a *apiv1.Attach, host ed25519.PublicKey) *apiv1.Attached {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != "" {
		return &apiv1.Attached{Serial: a.Serial, Refused: f.refuse, Retry: true}
	}
	r := &apiv1.Attached{Serial: a.Serial, Locator: at1}
	if a.Attachment.Router == "r2" {
		r.Locator = at2
	}
	if host == nil {
		host = f.host
	}
	if f.key != nil {
		l := sid.LocatorOf(netip.MustParsePrefix(r.Locator).Addr())
		f.certified++ // each is valid for a little longer
		c := wire.Certify(f.key, host, l, time.Now().Unix()-60, time.Now().Unix()+3600+f.certified)
		r.Certificate = c.Append(nil)
	}
	return r
}

func (f *fakeController) Resolve(_ context.Context, r *connect.Request[apiv1.ResolveRequest]) (*connect.Response[apiv1.ResolveResponse], error) {
	if r.Msg.Name == "web" || r.Msg.Address == webAddr.String() {
		return connect.NewResponse(&apiv1.ResolveResponse{Name: "web", Sid: webID.String(), Address: webAddr.String(), TtlSeconds: 7}), nil
	}
	return nil, connect.NewError(connect.CodeNotFound, errors.New("no such name"))
}

func (f *fakeController) GetService(context.Context, *connect.Request[apiv1.GetServiceRequest]) (*connect.Response[apiv1.Service], error) {
	return connect.NewResponse(&apiv1.Service{Name: "web", Address: webAddr.String()}), nil
}

// serve answers on a listener until the test or stopped ends it.
func (f *fakeController) serve(l net.Listener) {
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewAgentHandler(f))
	mux.Handle(apiv1connect.NewAdminHandler(f))
	ctx, cancel := context.WithCancel(context.Background())
	f.mu.Lock()
	f.stop = cancel
	f.mu.Unlock()
	api.Serve(ctx, mux, l)
}

// next is the next report that is not about load.
func (f *fakeController) next(t *testing.T, d *nstest.Proc) *apiv1.HostReport {
	t.Helper()
	return nstest.Receive(t, "what the daemon printed", f.reports)
}

// until skips reports until one is what is wanted.
func (f *fakeController) until(t *testing.T, d *nstest.Proc, want string, ok func(*apiv1.HostReport) bool) *apiv1.HostReport {
	t.Helper()
	for {
		r := nstest.Receive(t, want+"; what the daemon printed", f.reports)
		if ok(r) {
			return r
		}
	}
}

// A link is a host's namespace and, at the other end of its uplink, a router.
type link struct {
	*fakeRouter
	host *nstest.NS
	dir  string
}

func newLink(t *testing.T) *link {
	nstest.Root(t)
	c := &fakeController{reports: make(chan *apiv1.HostReport, 256)}
	l := &link{host: nstest.New(t, "host"), dir: t.TempDir(), fakeRouter: newRouter(t, "r1", c)}
	t.Cleanup(func() { syscall.Unmount(l.dir+"/run/bpf", syscall.MNT_DETACH) })
	nstest.Veth(t, l.host, "up0", l.router, "down0")
	l.begin(t)
	return l
}

// second is another router, at the host's interface up1.
func (l *link) second(t *testing.T) *fakeRouter {
	t.Helper()
	r := newRouter(t, "r2", l.controller)
	nstest.Veth(t, l.host, "up1", r.router, "down0")
	r.begin(t)
	return r
}

// A fakeRouter answers SOLICIT on its port down0 and is its own controller there.
type fakeRouter struct {
	name       string
	router     *nstest.NS
	controller *fakeController
	port       int
	mute       atomic.Bool // does not answer
	asked      atomic.Int32
}

func newRouter(t *testing.T, name string, c *fakeController) *fakeRouter {
	return &fakeRouter{name: name, router: nstest.New(t, name), controller: c}
}

// begin makes the router answer, once it has its port.
func (r *fakeRouter) begin(t *testing.T) {
	t.Helper()
	r.listen(t)
	r.hello(t)
}

// listen starts the controller at the router's link-local address.
func (r *fakeRouter) listen(t *testing.T) {
	t.Helper()
	r.listenAt(t, r.router.LinkLocal(t, "down0"))
}

func (r *fakeRouter) listenAt(t *testing.T, linkLocal any) {
	t.Helper()
	addr := fmt.Sprintf("[%v%%%d]:%d", linkLocal, r.router.Index(t, "down0"), r.port)
	var listener net.Listener
	nstest.Wait(t, "duplicate address detection in the router's namespace", func() (err error) {
		r.router.Do(func() { listener, err = net.Listen("tcp6", addr) })
		return err
	})
	t.Cleanup(func() { listener.Close() })
	if r.port == 0 { // else the one of before was asked for
		r.port = listener.Addr().(*net.TCPAddr).Port
	}
	go r.controller.serve(listener)
}

// hello greets the link and answers each SOLICIT.
func (r *fakeRouter) hello(t *testing.T) {
	t.Helper()
	conn := r.router.ListenPacket(t, "udp6", fmt.Sprintf("[::]:%d", sid.Port))
	go func() {
		buf := make([]byte, 2048)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			m, _ := wire.Parse(buf[:n])
			if s, ok := m.(wire.Solicit); ok && !r.mute.Load() {
				r.asked.Add(1)
				h := wire.Hello{Header: s.Header, Relay: true, RelayPort: uint16(r.port), Name: r.name, Port: "down0"}
				conn.WriteTo(h.Append(nil), from)
			}
		}
	}()
}

// start runs the daemon in the host's namespace.
func (l *link) start(t *testing.T, change func(*Config)) *nstest.Proc {
	t.Helper()
	cfg := Config{Name: "h1", Uplinks: []string{"up0"}, Socket: l.dir + "/hostd.sock", StateDir: l.dir + "/state", BPFFS: l.dir + "/run/bpf",
		DNS: []string{"[::1]:5353"}}
	if change != nil {
		change(&cfg)
	}
	b, _ := json.Marshal(cfg)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), daemonEnv+"="+string(b))
	d := l.host.StartCmd(t, cmd)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the daemon printed:\n%s", d.Output())
		}
	})
	return d
}

// program runs one with a listener on the service's address.
func (l *link) program(t *testing.T, port int) *nstest.Proc {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), listenEnv+"="+netip.AddrPortFrom(webAddr, uint16(port)).String())
	nstest.Wait(t, "hostd's set-up", func() error { // a host without its daemon refuses the bind
		var b []byte
		var err error
		l.host.Do(func() { b, err = os.ReadFile("/proc/sys/net/ipv6/ip_nonlocal_bind") })
		if err == nil && b[0] != '1' {
			err = errors.New("ip_nonlocal_bind is off")
		}
		return err
	})
	p := l.host.StartCmd(t, cmd)
	p.WaitFor(t, "listening")
	return p
}

// local is a client of the daemon's API.
func (l *link) local(t *testing.T) apiv1connect.LocalClient {
	t.Helper()
	client, base, err := api.Dial("unix:" + l.dir + "/hostd.sock")
	if err != nil {
		t.Fatal(err)
	}
	return apiv1connect.NewLocalClient(client, base)
}

// running is kernelState of a host that has joined, once the kernel is done with it too: it makes the route to a
// new address a moment after the address.
func (l *link) running(t *testing.T) (state string) {
	t.Helper()
	nstest.Wait(t, "ip -6 route show table local", func() error {
		state = l.kernelState(t)
		for _, last := range []string{"local fd5d:0:1:101::1 dev up0 table local", "fd5c::/32 via", "iif up0 lookup"} { // whatever is read first
			if !strings.Contains(state, last) {
				return fmt.Errorf("no %q yet", last)
			}
		}
		return nil
	})
	return state
}

// programID is what a filter has anew with each daemon, where there are no links by which it stays as it is.
var programID = regexp.MustCompile(` id \d+`)

// kernelState is what a host's set-up shows in, one line each.
func (l *link) kernelState(t *testing.T) string {
	t.Helper()
	var all []string
	for _, cmd := range []string{"ip -6 rule", "ip -6 route show table all", "ip -o -6 addr", "sysctl net.ipv6.ip_nonlocal_bind", "tc filter show dev up0 ingress"} {
		for _, line := range strings.Split(l.host.Run(t, strings.Fields(cmd)...), "\n") {
			if !strings.Contains(line, "multicast") && !strings.Contains(line, "ff00::/8") {
				if strings.Contains(line, "fe80::") { // the kernel makes it, or we where the kernel hesitates
					line = strings.ReplaceAll(line, " nodad", "")
				}
				all = append(all, programID.ReplaceAllString(strings.TrimSpace(line), ""))
			}
		}
	}
	return strings.Join(all, "\n")
}
