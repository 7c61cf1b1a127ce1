package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A load is a set of bound flows that are always busy. They must not notice what happens to daemons.
type load struct {
	net   *network
	flows []*loadFlow
}

type loadFlow struct {
	what  string
	conn  net.Conn
	done  atomic.Int64 // answers, or chunks of a stream
	stop  atomic.Bool
	ended chan error
	lost  bool // a datagram; valid after ended
}

// is says whether the host's flow is this one: a port may be used by others to another port, or by another protocol.
func (f *loadFlow) is(x *apiv1.Flow) bool {
	local := f.conn.LocalAddr()
	return x.Role == "client" && x.Local == local.String() && x.Proto == local.Network() &&
		(x.Proto == "udp" || x.Peer == f.conn.RemoteAddr().String())
}

const (
	echoPort = 7  // what comes is sent back
	askPort  = 80 // lines, and datagrams
)

// loadServers starts what a load needs on a host.
func (n *network) loadServers(host string, addr netip.Addr) {
	n.t.Helper()
	l := n.at(host).Listen(n.t, "tcp6", port(addr, echoPort))
	go accept(l, func(c net.Conn) { io.Copy(c, c) })
	n.serveTCP(host, port(addr, askPort))
	n.serveUDP(host, port(addr, askPort))
}

// createLoaded makes a service for load that no death of a daemon of ours may hurt. Where a process carries the packets
// (Open vSwitch's, the lab's engine), a busy machine lets it stand still for longer than hosts may be silent, 0.14 s with
// the time for their answers (docs/protocol.md §5.3, §6.4), and a host that is there is taken for gone: as an operator of
// such switches would, the service has patience with it.
func (n *network) createLoaded(name string) netip.Addr {
	n.t.Helper()
	policy := &apiv1.Policy{}
	if !n.linux() {
		policy.PatienceMs = 10_000
	}
	return n.create(name, policy)
}

// startLoad opens a stream whose bytes are compared, a request/response connection and a UDP flow, and
// keeps them busy until finish.
func (n *network) startLoad(addr netip.Addr) *load {
	n.t.Helper()
	l := &load{net: n}
	l.run("the TCP stream", n.dial("c1", "tcp6", port(addr, echoPort)), stream)
	l.run("the TCP request/response flow", n.dial("c1", "tcp6", port(addr, askPort)), exchange)
	l.run("the UDP request/response flow", n.dial("c1", "udp6", port(addr, askPort)), exchange)
	l.progress("before anything happened")
	return l
}

func (l *load) run(what string, c net.Conn, work func(*loadFlow) error) {
	f := &loadFlow{what: what, conn: c, ended: make(chan error, 1)}
	l.flows = append(l.flows, f)
	go func() { f.ended <- work(f) }()
}

// progress waits until each flow has gone on for a while from now.
func (l *load) progress(when string) {
	l.net.t.Helper()
	for _, f := range l.flows {
		from := f.done.Load()
		nstest.Wait(l.net.t, l.net.look(), func() error {
			select {
			case err := <-f.ended:
				l.net.t.Fatalf("%s: %s ended after %d answers: %v\nlook at: %s", when, f.what, f.done.Load(), err, l.net.look())
			default:
			}
			if now := f.done.Load(); now < from+20 {
				return fmt.Errorf("%s: %s does not go on: %d answers, now %d", when, f.what, from, now)
			}
			return nil
		})
	}
}

// goesBy moves the flows from one of the host's links to another, which are both up: not even a datagram is lost. Peers
// take a move by what the host can prove.
func (l *load) goesBy(host string, from, to int) {
	n := l.net
	n.t.Helper()
	ports := n.lab.Plan().Node(host).Ports
	req := &apiv1.MoveFlowsRequest{From: ports[from].Dev, To: ports[to].Dev}
	nstest.Wait(n.t, n.look(), func() error {
		if _, err := n.local(host).MoveFlows(n.t.Context(), connect.NewRequest(req)); err != nil {
			return err
		}
		r, err := n.local(host).ListFlows(n.t.Context(), connect.NewRequest(&apiv1.ListFlowsRequest{}))
		if err != nil {
			return err
		}
		for _, f := range l.flows {
			i := slices.IndexFunc(r.Msg.Flows, f.is)
			if i < 0 {
				return fmt.Errorf("%s is not among the %d flows of %s", f.what, len(r.Msg.Flows), host)
			}
			if x := r.Msg.Flows[i]; x.State != "bound" || x.Uplink != req.To {
				return fmt.Errorf("%s does not go by %s: %v", f.what, req.To, x)
			}
		}
		return nil
	})
}

// finish ends the flows in good order and fails the test if one has seen anything.
func (l *load) finish() {
	l.net.t.Helper()
	for _, f := range l.flows {
		f.stop.Store(true)
		if err := nstest.Receive(l.net.t, l.net.look(), f.ended); err != nil {
			l.net.t.Errorf("%s: after %d answers: %v\nlook at: %s", f.what, f.done.Load(), err, l.net.look())
		}
		if f.lost {
			l.net.t.Logf("%s: a question or its answer was lost, of %d", f.what, f.done.Load())
		}
		f.conn.Close()
	}
}

// mayLose: a question of a UDP flow may be asked again where a queue of the kernel was full since.
func (f *loadFlow) mayLose(full uint64) bool {
	return f.conn.LocalAddr().Network() == "udp" && fullQueues() > full
}

// fullQueues is how many packets the kernel has dropped because a processor's queue of received packets was full. All
// namespaces share these queues: a flood that another test makes beside this one fills them for all.
func fullQueues() (n uint64) {
	text, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) { // of a processor: received, dropped, ...
		if of := strings.Fields(line); len(of) > 1 {
			dropped, _ := strconv.ParseUint(of[1], 16, 32)
			n += dropped
		}
	}
	return n
}

// exchange asks and waits, always by the same host.
func exchange(f *loadFlow) error {
	first, full := "", uint64(0)
	for !f.stop.Load() {
		line := strconv.FormatInt(f.done.Load(), 10)
		if f.done.Load()%64 == 0 { // it costs more than an answer
			full = fullQueues()
		}
		host, err := ask(f.conn, line)
		if f.mayLose(full) && errors.Is(err, os.ErrDeadlineExceeded) {
			f.lost = true
			host, err = ask(f.conn, line)
		}
		if err != nil {
			return err
		}
		if first == "" {
			first = host
		}
		if host != first {
			return fmt.Errorf("%s answers a flow that is bound to %s", host, first)
		}
		f.done.Add(1)
	}
	return nil
}

// stream sends random bytes without end and compares what comes back.
func stream(f *loadFlow) error {
	block := make([]byte, 65521) // prime: a piece that is lost or doubled does not go unseen
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range block {
		block[i] = byte(rng.Uint32())
	}
	sent := make(chan error, 1)
	go func() {
		for !f.stop.Load() {
			if _, err := f.conn.Write(block); err != nil {
				sent <- err
				return
			}
		}
		sent <- f.conn.(*net.TCPConn).CloseWrite()
	}()
	for got := make([]byte, len(block)); ; f.done.Add(1) {
		_, err := io.ReadFull(f.conn, got)
		if err == io.EOF {
			return <-sent
		}
		if err != nil {
			return err
		}
		if !bytes.Equal(got, block) {
			return fmt.Errorf("block %d came back changed", f.done.Load())
		}
	}
}
