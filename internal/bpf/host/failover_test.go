package host_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// How much goes each way over a connection that changes servers.
const (
	downLen = 20 << 20 // more than the first server can leave queued
	upLen   = 6 << 20
)

// A stage is a client and two servers, of which the first will die.
type stage struct {
	over                  map[host.Tuple]bool // whose death was told
	t                     *testing.T
	network               *host.TestNetwork
	client, first, second *host.TestHost
	kicks, ends           *kick.Kicker // the client's, the first server's
	died                  chan host.Event
}

func newStage(t *testing.T, sysctls map[string]string) *stage {
	s := &stage{t: t, network: host.NewTestNetwork(t), died: make(chan host.Event, 16)}
	for i, h := range []**host.TestHost{&s.client, &s.first, &s.second} {
		*h = s.network.Join(t, [...]string{"client", "first", "second"}[i], uint16(i+1))
		for path, value := range sysctls {
			(*h).Sysctl(t, path, value)
		}
	}
	host.CountersAtFailure(t, s.client, s.first, s.second)
	s.network.Serve(t, host.WebTCP, s.first)
	must(t, s.second.Edge().Admit(host.WebTCP))
	must(t, s.first.Edge().SetService(host.WebTCP.Service, host.Policy{Continue: true}))
	s.kicks, s.ends = kicker(t, s.client), kicker(t, s.first)
	watch(t, s.first)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func kicker(t *testing.T, h *host.TestHost) (k *kick.Kicker) {
	var err error
	h.Do(func() { k, err = kick.Open() })
	must(t, err)
	t.Cleanup(func() { k.Close() })
	return k
}

// watch lets the hooks tell the edge of processes that die.
func watch(t *testing.T, h *host.TestHost) {
	hooks, err := sockets.Open(nstest.BPFFS)
	must(t, err)
	t.Cleanup(func() { hooks.Close() })
	var watched *sockets.Host
	h.Do(func() { watched, err = hooks.Join(host.Space.Services) })
	must(t, err)
	t.Cleanup(func() { watched.Close(false) })
}

// hear plays the first server's daemon.
func (s *stage) hear() {
	must(s.t, s.first.Heartbeat())
	go func() { // ends with the edge
		for {
			e, err := s.first.Edge().ReadEvent()
			if err != nil {
				return
			}
			if e.Kind == host.Died {
				s.died <- e
			}
		}
	}()
}

// serve starts the first server.
func (s *stage) serve(write, read int64) *nstest.Proc {
	cmd := exec.Command("/proc/self/exe")
	addr := netip.AddrPortFrom(host.WebAddr, host.WebTCP.Port)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%v %d %d", host.StreamerEnv, addr, write, read))
	p := s.first.StartCmd(s.t, cmd)
	p.WaitFor(s.t, "listening")
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("the first server printed %q", p.Output())
		}
	})
	return p
}

// A connection is a client's, whose program knows nothing.
type connection struct {
	*net.TCPConn
	tuple host.Tuple
	wrote chan error
}

func (s *stage) connect() *connection {
	c, err := s.client.Dial("tcp6", netip.AddrPortFrom(host.WebAddr, host.WebTCP.Port).String())
	must(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	must(s.t, c.SetDeadline(time.Now().Add(nstest.Deadline)))
	tcp := c.(*net.TCPConn)
	must(s.t, tcp.SetReadBuffer(128<<10)) // what it does not read stays with the server
	return &connection{tcp, host.Tuple{Proto: sid.TCP, Local: tcp.LocalAddr().(*net.TCPAddr).AddrPort(),
		Remote: tcp.RemoteAddr().(*net.TCPAddr).AddrPort()}, make(chan error, 1)}
}

// upload sends part of the stream and, with the last part, its end.
func (c *connection) upload(from, to int64) {
	go func() {
		_, err := io.CopyN(c, host.NewStream(host.Up, from), to-from)
		if to == upLen {
			err = errors.Join(err, c.CloseWrite())
		}
		c.wrote <- err
	}()
}

func kickTuple(t host.Tuple) kick.Tuple { return kick.Tuple{Local: t.Local, Peer: t.Remote} }

// at waits until the socket is in a state.
func (s *stage) at(k *kick.Kicker, t kick.Tuple, what string, is func(*kick.Socket) bool) {
	s.t.Helper()
	nstest.Wait(s.t, "ss -tanie in the namespaces", func() error {
		all, err := k.State(t)
		if err != nil || len(all) != 1 {
			return fmt.Errorf("%d sockets %v: %v", len(all), t, err)
		}
		if !is(&all[0]) {
			return fmt.Errorf("not %s: %v", what, all[0])
		}
		return nil
	})
}

// served is the connection as the first server's socket names it.
func (s *stage) served(c *connection) kick.Tuple {
	f, ok, err := s.client.Edge().Lookup(c.tuple)
	if err != nil || !ok {
		s.t.Fatalf("the client's flow %v: %v %v", c.tuple, ok, err)
	}
	return kick.Tuple{Local: c.tuple.Remote, Peer: netip.AddrPortFrom(f.Stable, c.tuple.Local.Port())}
}

// listen begins to serve at another server. The kernel adopts nothing for a listener of Multipath TCP, as
// Go's are unless told otherwise.
func (s *stage) listen(at *host.TestHost, addr string) (l net.Listener) {
	if err := at.Edge().CanAdopt(); err != nil {
		nstest.Lacks(s.t, "%v", err)
	}
	var plain net.ListenConfig
	plain.SetMultipathTCP(false)
	var err error
	at.Do(func() { l, err = plain.Listen(s.t.Context(), "tcp6", addr) })
	must(s.t, err)
	s.t.Cleanup(func() { l.Close() })
	must(s.t, l.(*net.TCPListener).SetDeadline(time.Now().Add(nstest.Deadline)))
	return l
}

// goOn moves the connection to another server as the daemons do, and plays that server to the end.
func (s *stage) goOn(c *connection, to *host.TestHost) (done chan error, state wire.Transport) {
	l := s.listen(to, c.tuple.Remote.String())
	state, window := s.carry(c, to)
	done = make(chan error, 1)
	go func() { done <- finish(l, state) }()
	_, err := s.kicks.Kick(kick.SetOf(kickTuple(c.tuple)))
	must(s.t, err)
	s.nudge(c, state, window)
	return done, state
}

// carry blocks and reads the client's connection, has it adopted, and binds it to where it was.
func (s *stage) carry(c *connection, to *host.TestHost) (state wire.Transport, window uint16) {
	t, old := s.t, s.served(c)
	steer(t, s.client.Edge(), host.Step{Verb: host.Block, Flow: c.tuple})
	all, err := s.kicks.State(kickTuple(c.tuple))
	must(t, err)
	if len(all) != 1 {
		t.Fatalf("%d sockets of %v", len(all), c.tuple)
	}
	state, err = all[0].Transport()
	must(t, err)
	here, there := host.Addr{Locator: s.client.Locator(), Socket: socketID()}, host.Addr{Locator: to.Locator(), Socket: socketID()}
	adoption := host.Adoption{Flow: host.Tuple{Proto: sid.TCP, Local: old.Local, Remote: old.Peer}, Local: there, Peer: here, Transport: state}
	must(t, to.Edge().Adopt(adoption))
	must(t, to.Edge().Adopt(adoption)) // a repeated RESUME
	steer(t, s.client.Edge(), host.Step{Verb: host.Bind, Flow: c.tuple, Local: here, Peer: there})
	return state, all[0].Window()
}

// nudge begins the connection at the new server; packets may be lost.
func (s *stage) nudge(c *connection, state wire.Transport, window uint16) {
	for wait := 5 * time.Millisecond; ; wait *= 2 {
		s.client.Do(func() { must(s.t, s.client.Edge().Nudge(c.tuple, state, window)) })
		time.Sleep(wait)
		heard, err := s.client.Edge().Heard(c.tuple)
		must(s.t, err)
		if heard > 0 {
			return
		}
		if wait > nstest.Deadline/2 {
			s.t.Fatal("the new server does not answer")
		}
	}
}

func socketID() sid.SocketID { return sid.NewSocketID(rand.Uint64()) }

func steer(t *testing.T, e *host.Edge, steps ...host.Step) {
	t.Helper()
	if failed, err := e.Steer(steps); err != nil || len(failed) > 0 {
		t.Fatalf("steer %+v: failed %v, %v", steps, failed, err)
	}
}

// finish is the second server: it accepts a connection like any other, and goes on where the first one stopped.
func finish(l net.Listener, at wire.Transport) error {
	accepted, err := l.Accept()
	l.Close()
	if err != nil {
		return err
	}
	c := accepted.(*net.TCPConn)
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(nstest.Deadline)); err != nil {
		return err
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := io.CopyN(c, host.NewStream(host.Down, int64(at.Received)), downLen-int64(at.Received))
		wrote <- errors.Join(err, c.CloseWrite())
	}()
	err = host.NewStream(host.Up, int64(at.Sent)).Check(c, upLen-int64(at.Sent))
	if err == nil {
		err = ended(c)
	}
	return errors.Join(err, <-wrote)
}

// ended reads the end of a stream.
func ended(r io.Reader) error {
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return fmt.Errorf("behind the last byte: %d bytes, %v; want the end", n, err)
	}
	return nil
}

// A downfall is how the first server is left, and what of the streams was under way then.
type downfall struct {
	name        string
	write, read int64 // by the first server
	read0       int64 // by the client before
	upload0     int64 // by the client before, and waited for; 0: what it can
	cut         bool  // the host is cut off, for good; otherwise the process is killed
}

// before is how much the client sends in one go. An end that the first server has acknowledged nobody could say again.
func (d *downfall) before() int64 {
	switch {
	case d.upload0 > 0:
		return d.upload0
	case d.cut:
		return upLen - 1
	}
	return upLen
}

var downfalls = []downfall{
	{name: "idle", write: 1 << 20, read: 1 << 20, read0: 1 << 20, upload0: 1 << 20},
	{name: "much sent and not read", write: downLen, read: 1 << 20, read0: 1 << 20, upload0: 1 << 20},
	{name: "much received and not read", write: 1 << 20, read: 1000, read0: 1 << 20, upload0: 0},
	{name: "both", write: downLen, read: 1000, read0: 1000, upload0: 0},
	{name: "cut off", write: downLen, read: upLen, read0: 2 << 20, upload0: 0, cut: true},
}

// A connection goes on at another server, in both directions, whatever was under way, and with every set of options
// that two kernels may have agreed on.
func TestAConnectionOutlivesItsServer(t *testing.T) {
	safety.Test(t, safety.Bytes)
	options := []struct {
		name    string
		sysctls map[string]string
	}{
		{"all options", nil},
		{"no timestamps", map[string]string{"net/ipv4/tcp_timestamps": "0"}},
		{"no SACK", map[string]string{"net/ipv4/tcp_sack": "0"}},
		{"no window scales", map[string]string{"net/ipv4/tcp_window_scaling": "0"}},
		{"no options", map[string]string{"net/ipv4/tcp_timestamps": "0", "net/ipv4/tcp_sack": "0", "net/ipv4/tcp_window_scaling": "0"}},
	}
	var gaps []time.Duration
	for _, o := range options {
		t.Run(o.name, func(t *testing.T) {
			s := newStage(t, o.sysctls)
			s.hear()
			for _, d := range downfalls {
				gap := outlive(t, s, d)
				t.Logf("%s: %v from the last byte of the old server to the first of the new one", d.name, gap)
				gaps = append(gaps, gap)
			}
		})
	}
	slices.Sort(gaps)
	t.Logf("%d failovers, from last byte to first: %v", len(gaps), gaps)
}

func outlive(t *testing.T, s *stage, d downfall) time.Duration {
	t.Helper()
	p := s.serve(d.write, d.read)
	c := s.connect()
	down := host.NewStream(host.Down, 0)
	c.upload(0, d.before())
	if d.upload0 > 0 {
		must(t, <-c.wrote)
	}
	must(t, down.Check(c, d.read0))
	s.settle(c, d)
	struck := time.Now()
	if d.cut {
		s.network.Cut(t, s.first)
	} else {
		must(t, s.first.Heartbeat()) // its goroutine may wait for a processor
		p.Signal(syscall.SIGKILL)
	}
	rest := receive(c, down, d.read0)
	if !d.cut {
		s.await(c)
	}
	done, state := s.goOn(c, s.second)
	if d.cut {
		must(t, <-c.wrote)
	}
	if d.before() < upLen {
		c.upload(d.before(), upLen)
	}
	r := <-rest
	if err := errors.Join(r.err, <-c.wrote, <-done); err != nil {
		t.Fatalf("%s: %v\nit went on with %+v", d.name, err, state)
	}
	return r.gap(struck, int64(state.Received))
}

// settle waits until what is to be under way is.
func (s *stage) settle(c *connection, d downfall) {
	if d.upload0 > 0 {
		s.at(s.kicks, kickTuple(c.tuple), "all acknowledged", func(k *kick.Socket) bool { return k.InFlight()+k.Queued() == 0 })
	}
	if d.write == downLen && !d.cut {
		s.at(s.ends, s.served(c), "full", func(k *kick.Socket) bool { return k.Queued() > 4<<20 })
	}
	if d.write < downLen {
		s.at(s.ends, s.served(c), "drained", func(k *kick.Socket) bool { return k.InFlight()+k.Queued() == 0 })
	}
	if d.read < d.upload0 || d.upload0 == 0 && !d.cut {
		s.at(s.ends, s.served(c), "unread", func(k *kick.Socket) bool { return k.Unread() > 10_000 })
	}
}

// await waits until the first server's daemon hears of the death.
func (s *stage) await(c *connection) {
	e := nstest.Receive(s.t, "the death of the process", s.died)
	for s.over[e.Tuple] { // told twice: its kernel sent another segment before it was blocked
		e = nstest.Receive(s.t, "the death of the process", s.died)
	}
	want := s.served(c)
	if e.Tuple.Local != want.Local || e.Tuple.Remote != want.Peer {
		s.t.Fatalf("died: %v, want %v", e.Tuple, want)
	}
	if s.over == nil {
		s.over = map[host.Tuple]bool{}
	}
	s.over[e.Tuple] = true
	steer(s.t, s.first.Edge(), host.Step{Verb: host.Block, Flow: e.Tuple})
	_, err := s.ends.Reset(kick.SetOf(want))
	must(s.t, err)
}

// An arrival is where the client's program stood, and when.
type arrival struct {
	at   int64
	when time.Time
}

// A reading is all arrivals of the rest of the stream.
type reading struct {
	*net.TCPConn
	at   int64
	list []arrival
	err  error
}

func (r *reading) Read(b []byte) (int, error) {
	n, err := r.TCPConn.Read(b)
	r.at += int64(n)
	r.list = append(r.list, arrival{r.at, time.Now()})
	return n, err
}

// receive reads the rest of the stream and its end.
func receive(c *connection, s *host.Stream, at int64) <-chan *reading {
	done := make(chan *reading, 1)
	r := &reading{TCPConn: c.TCPConn, at: at}
	go func() {
		if r.err = s.Check(r, downLen-at); r.err == nil {
			r.err = ended(c)
		}
		done <- r
	}()
	return done
}

// gap is how long the stream stood still after the stroke, where the servers changed.
func (r *reading) gap(struck time.Time, at int64) time.Duration {
	last := struck
	for _, a := range r.list {
		if a.at > at {
			return a.when.Sub(last)
		}
		if a.when.After(last) {
			last = a.when
		}
	}
	return 0
}
