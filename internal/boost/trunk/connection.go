package trunk

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/boost/link"
	"scaffold.dev/scaffold/internal/boost/seal"
	"scaffold.dev/scaffold/internal/core/stripe"
	"scaffold.dev/scaffold/internal/core/tune"
)

// A connection carries frames of the trunk, whose keys are known.
type connection struct {
	t    *Trunk
	path *Path
	id   connectionID
	conn *net.TCPConn
	work chan struct{} // there may be something to send

	rtt      time.Duration // under the trunk's lock, as it was measured last
	shortest time.Duration // that the kernel has seen; 0: it has seen none
	heard    time.Time     // when something that was sent was last known to have been acknowledged
	met      bool          // the other agent has said its HELLO

	greeted func() error // reads it; nil: it was read

	told     bool    // what this end has of sessions was said on it
	was      counted // as of the last decision about the path
	now      counted // as it was measured last
	full     bool    // it takes no more bytes
	timeouts uint8   // how often its timer has fired since something was acknowledged

	rate    uint64 // bytes a second that it may send
	control string // congestion control

	rests   bool // it carries no chunks
	dropped bool // it was closed, and who reads it has not seen that yet
	asks    bool // a PING is to go out, see Silent
	retires bool // it carries nothing that is not on its way already, and ends
	late    bool // it takes more than twice as long as another one, or answers nothing: what is small goes there
	doubted bool // it answers nothing, and another one does: what went out on it goes out on others

	in  *link.Reader
	out *link.Writer
}

// Serve carries frames over a data connection of the path on which this end has said its HELLO, until that ends, and says why.
// greeted reads the other one's, if that is still to come. A number that was used before is refused.
func (p *Path) Serve(conn *net.TCPConn, number uint64, secret seal.Secret, greeted func() error) error {
	c := newConnection(p, conn, number, secret)
	c.greeted = greeted
	if err := p.t.add(c, secret); err != nil {
		conn.Close()
		return err
	}
	return c.serve()
}

func (c *connection) serve() (err error) {
	if c.greeted != nil {
		if err = c.greeted(); err == nil {
			c.t.meet(c)
		}
	}
	if err == nil {
		err = c.read()
	}
	c.t.remove(c)
	if err = c.t.blame(err); c.t.retires(c) {
		err = fmt.Errorf("%w: %w", ErrRetired, err)
	}
	return err
}

func newConnection(p *Path, conn *net.TCPConn, number uint64, secret seal.Secret) *connection {
	t := p.t
	from, to := seal.FromDialer, seal.ToDialer
	if !t.Dials {
		from, to = to, from
	}
	c := &connection{t: t, path: p, id: connectionID(number), conn: conn, work: make(chan struct{}, 1), rtt: firstRTT, heard: time.Now()}
	c.in = link.NewReader(conn, t.Protection, seal.NewOpener(t.Protection, secret, number, to))
	c.out = link.NewWriter(conn, seal.NewSealer(t.Protection, secret, number, from))
	return c
}

// ErrStale says that a connection is of a secret, or has a number, that no longer counts.
var ErrStale = errors.New("the connection is of an earlier control connection, or its number was used before")

func (t *Trunk) add(c *connection, secret seal.Secret) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	if p := c.path; !p.up || secret != p.secret || !p.used.take(uint64(c.id)) || t.conns[c.id] != nil {
		return ErrStale
	}
	t.conns[c.id] = c
	c.tune()
	if c.greeted == nil {
		c.met, t.lonely = true, time.Time{}
	}
	t.sender.Connect(c.id, stripe.Measure{RTT: c.rtt})
	c.path.rest()
	t.all.Go(c.write) // under the lock: Close waits for all that began before it
	t.changed()
	return nil
}

// meet notes that the other agent is at the other end of a connection: until then nobody may be, and what has been sent on
// it goes nowhere.
func (t *Trunk) meet(c *connection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns[c.id] == c {
		c.met, t.lonely = true, time.Time{}
		t.changed()
	}
}

// reached is how many connections there are with the other agent at their other end.
func (t *Trunk) reached() (connections int) {
	for _, p := range t.paths {
		connections += p.reached()
	}
	return connections
}

// remove takes a connection away that has ended: what it carried goes out on others, and what was said on it is said
// again.
func (t *Trunk) remove(c *connection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns[c.id] != c {
		return
	}
	delete(t.conns, c.id)
	c.path.shaping.changed = true
	c.conn.Close()
	wake(c.work) // its writer ends
	t.sender.Disconnect(c.id)
	c.path.rest()
	t.compare()
	t.receiver.Repeat()
	t.sayAgain(c.id)
	if t.lonely.IsZero() && t.reached() == 0 {
		t.lonely = time.Now()
	}
	t.changed()
}

// blame tells of a connection that ended by a fault of the other agent, and passes on what is none.
func (t *Trunk) blame(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, link.ErrCut) || errors.Is(err, net.ErrClosed) || errors.Is(err, ErrClosed) || errors.As(err, new(unix.Errno)) || errors.As(err, new(net.Error)) {
		return err
	}
	if t.Broken != nil {
		t.Broken(err)
	}
	return err
}

// unsent is how many bytes the kernel may hold of a connection that have not left: what is behind them is decided late,
// when it is known which connection is fast.
const unsent = 128 << 10

// silent is how long what was sent may stay unacknowledged: then the connection ends, and its chunks go out on others.
const silent = 3 * time.Second

// tune sets what the kernel is to do with a data connection, as it was decided last. All of it makes things better, none is
// needed: a kernel without BBR, or one that does not let this process choose it, has the host's own.
func (c *connection) tune() {
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return
	}
	_ = c.conn.SetNoDelay(true)
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, cmp.Or(c.t.Control, bbr))
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silent.Milliseconds()))
		c.rate, c.control = ^uint64(0), controlOf(int(fd))
		if i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			c.was = countedBy(i) // its HELLO is no measure of the path
			c.now = c.was
		}
	})
	s := &c.path.shaping
	if s.tuner == nil {
		settings := c.path.settings()
		settings.BBR = c.control == bbr && cmp.Or(c.t.Control, bbr) == bbr
		s.tuner, s.at = tune.NewTuner(settings), time.Now()
		s.decision = s.tuner.Step(tune.Measure{Now: s.at})
	}
	s.changed = true
	c.obey(s.decision, c.path.carry(c.path.usable()))
}

// bbr is the congestion control of connections between agents, where it can be had.
const bbr = "bbr"

// info is what the kernel knows of a connection.
func info(c *net.TCPConn) (i *unix.TCPInfo, err error) {
	err = onSocket(c, func(fd int) (err error) {
		i, err = unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		return err
	})
	return i, err
}

// onSocket has something asked of a connection's socket, or told to it, while nobody closes that.
func onSocket(c *net.TCPConn, what func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	if fail := raw.Control(func(fd uintptr) { err = what(int(fd)) }); fail != nil {
		return fail
	}
	return err
}

// noMinRTT is tcp_info's min_rtt before there is one (Linux, tcp_min_rtt).
const noMinRTT = 1<<32 - 1

// full reports whether a connection takes no more: its window is full, but for what the kernel holds back to send it in one
// piece, up to a third (tcp_tso_win_divisor), or the kernel has bytes that it has not sent: they wait for the window of the
// other agent's socket, for the pace, or for room behind them.
func full(i *unix.TCPInfo) bool {
	flying := int64(i.Unacked) - int64(i.Sacked) - int64(i.Lost) + int64(i.Retrans)
	return i.Notsent_bytes > 0 || flying > 0 && 3*flying >= 2*int64(i.Snd_cwnd)
}

// lately is for how long what was measured on a connection that rests says how its path is.
const lately = 10 * time.Second

// current reports whether what was measured of a connection is of now, or of so long ago at most. One that rests carries next to
// nothing, and what the kernel has measured on it may be of any time.
func (c *connection) current(now time.Time, within time.Duration) bool {
	return !c.rests || now.Sub(c.heard) < within
}

// doubtful is how often a connection's timer has fired, one time after the other, until what is on it goes out on others that
// answer: after 0.6 s at least, and its round trips. One time is often a last segment that was lost.
const doubtful = 2

// stalledRate is what a connection is taken to carry that answers nothing, bytes a second: nobody waits for it.
const stalledRate = 1

// measure tells the engines how fast the connections are. It returns the longest round trip of them, 0 without any.
func (t *Trunk) measure(now time.Time) time.Duration {
	worst := time.Duration(0)
	for _, c := range t.conns {
		i, err := info(c.conn)
		if err != nil {
			continue
		}
		c.rtt = time.Duration(i.Rtt) * time.Microsecond
		if i.Min_rtt != noMinRTT {
			c.shortest = time.Duration(i.Min_rtt) * time.Microsecond
		}
		counts := countedBy(i)
		if counts.acked != c.now.acked {
			c.heard = now
		}
		c.now, c.full = counts, full(i)
		m := stripe.Measure{RTT: c.rtt, Rate: float64(i.Delivery_rate)}
		if c.timeouts = i.Retransmits; c.timeouts > 0 { // and nothing came since: the last rate is of a path that was
			m.Rate = stalledRate
		}
		t.sender.Measure(c.id, m)
		if c.current(now, lately) {
			worst = max(worst, c.rtt)
		}
	}
	t.compare()
	if worst > 0 {
		t.receiver.SetRTT(worst)
	}
	return worst
}

// compare finds which connections take much longer than the best one. On one that retires nothing small goes: the others are not
// measured by it from then on, or what is small would wait until they are measured again.
func (t *Trunk) compare() {
	best := time.Duration(0)
	for _, c := range t.conns {
		if !c.retires && c.timeouts == 0 && (best == 0 || c.rtt < best) {
			best = c.rtt
		}
	}
	var turned []*Path
	for _, c := range t.conns {
		c.late = best > 0 && (c.timeouts > 0 || c.rtt > 2*best)
		if doubted := best > 0 && c.timeouts >= doubtful; doubted != c.doubted {
			c.doubted = doubted
			turned = append(turned, c.path)
			if doubted { // what is small and went out on it is no chunk: whoever has it twice heeds it once
				t.receiver.Repeat()
				t.sayAgain(c.id)
			}
		}
	}
	for _, p := range turned { // before chunks look for another connection: the best one may have rested until now
		p.shaping.changed = true
		p.rest()
	}
	for _, c := range t.conns {
		t.sender.Doubt(c.id, c.doubted)
	}
}

// read takes frames until the connection ends.
func (c *connection) read() error {
	for {
		h, payload, err := c.in.Next()
		if err != nil {
			return err
		}
		if err := c.t.arrived(c, h, payload); err != nil {
			return err
		}
	}
}

// write sends what the engines have for the connection until it ends.
func (c *connection) write() {
	var b batch
	for {
		if !c.t.collect(c, &b) {
			c.leave()
			return
		}
		if b.empty() {
			select {
			case <-c.work:
			case <-c.t.ctx.Done():
				return
			}
			continue
		}
		err := b.put(c.out)
		c.t.collected(&b)
		if err == nil {
			err = c.out.Flush()
		}
		if err != nil {
			c.t.remove(c)
			return
		}
	}
}
