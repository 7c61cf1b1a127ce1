package load

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/emu/traffic"
)

const (
	bottleneck = 20_000_000 // bit/s
	buffer     = 250_000    // bytes: 100 ms
	settles    = 60 * time.Second
	measured   = 30 * time.Second
)

// A dumbbell has senders at one router, receivers' router behind the one slow link.
type dumbbell struct {
	*emu.Net
	senders  []*Sender
	receiver *Receiver
	slow     *emu.Link
	near     *Router
}

// newDumbbell lets flows begin one second after another; the i-th round trip is 40 ms, and longer by i times more.
func newDumbbell(t *testing.T, flows int, blind bool, more time.Duration) *dumbbell {
	t.Helper()
	d := &dumbbell{Net: emu.New(emu.Options{Virtual: true, Log: t.Errorf}), receiver: &Receiver{}}
	t.Cleanup(func() { d.Close() })
	near, far := d.router(t), d.router(t)
	d.near = near
	a, b := d.Router("near", near), d.Router("far", far)
	d.slow = d.link(t, a, b, emu.Params{Rate: bottleneck, Queue: buffer, Delay: 10 * time.Millisecond}, emu.Params{Delay: 10 * time.Millisecond})
	d.link(t, b, d.Router("receiver", d.receiver), emu.Params{}, emu.Params{})
	d.route(t, near, "fd09::/16", 0)
	d.route(t, far, "fd09::/16", 1)
	d.route(t, far, "fd01::/16", 0)
	for i := range flows {
		s := &Sender{From: netip.MustParseAddr(fmt.Sprintf("fd01:%x::1", i)), To: netip.MustParseAddr("fd09::1"), Size: 1000,
			Begin: time.Duration(i) * time.Second, Window: Window{Blind: blind}}
		p := emu.Params{Rate: 1e9, Delay: 10*time.Millisecond + time.Duration(i)*more/2}
		d.link(t, d.Router(fmt.Sprint("s", i), s), a, p, p)
		d.route(t, near, fmt.Sprintf("fd01:%x::/32", i), i+1)
		d.senders = append(d.senders, s)
	}
	return d
}

func (d *dumbbell) router(t *testing.T) *Router {
	t.Helper()
	r, err := New(forward.Config{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (d *dumbbell) route(t *testing.T, r *Router, prefix string, port int) {
	t.Helper()
	if err := r.Add(forward.To(netip.MustParsePrefix(prefix), port)); err != nil {
		t.Fatal(err)
	}
}

func (d *dumbbell) link(t *testing.T, a, b emu.Node, there, back emu.Params) *emu.Link {
	t.Helper()
	l, err := d.Link(a, b, [2]emu.Params{there, back})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A summary is what a run came to.
type summary struct {
	used    float64       // of the bottleneck
	fair    float64       // Jain's index of the flows' rates
	queue   time.Duration // mean wait at the bottleneck
	longest time.Duration
	lost    uint64
}

// run lets flows settle and measures.
func (d *dumbbell) run(t *testing.T) (s summary) {
	t.Helper()
	run := func(until time.Duration) {
		if err := d.Run(until); err != nil {
			t.Fatal(err)
		}
	}
	run(settles)
	clear(d.receiver.Bytes)
	before := d.losses()
	port, samples := d.slow.Ports()[0], 0
	for at := settles; at < settles+measured; at += 10 * time.Millisecond {
		run(at)
		wait := time.Duration(float64(port.Waiting(at)) * 8e9 / bottleneck)
		s.queue, s.longest = s.queue+wait, max(s.longest, wait)
		samples++
	}
	s.queue /= time.Duration(samples)
	s.lost = d.losses() - before
	var sum, squares float64
	for _, x := range d.senders {
		rate := float64(d.receiver.Bytes[x.From]) * 8 / measured.Seconds()
		sum, squares = sum+rate, squares+rate*rate
	}
	s.used = sum * 1014 / 1000 / bottleneck
	s.fair = sum * sum / (float64(len(d.senders)) * squares)
	return s
}

func (d *dumbbell) losses() (n uint64) {
	for _, s := range d.senders {
		n += s.Losses
	}
	return n
}

// Two to ten flows share a bottleneck: it is well used, its queue stays short, nothing is lost and shares are fair. The
// same flows without marks fill the queue and lose packets.
func TestSendersThatObeyShareALinkWithoutAQueue(t *testing.T) {
	for _, flows := range []int{2, 5, 10} {
		got, blind := newDumbbell(t, flows, false, 0).run(t), newDumbbell(t, flows, true, 0).run(t)
		t.Logf("%d flows: marks %+v", flows, got)
		t.Logf("%d flows: drop-tail %+v", flows, blind)
		if got.used < 0.9 || got.fair < 0.95 || got.queue > 5*time.Millisecond || got.lost != 0 {
			t.Errorf("%d flows: %+v; want 90 %% used, fairness of 0.95, 5 ms of queue and no loss", flows, got)
		}
		if blind.queue < 4*got.queue || blind.lost == 0 {
			t.Errorf("%d flows: without marks %+v; want a longer queue and losses", flows, blind)
		}
	}
}

// Flows whose round trips are 40 to 80 ms get the same rates all the same.
func TestSharesAreFairWhateverTheRoundTrip(t *testing.T) {
	if got := newDumbbell(t, 5, false, 10*time.Millisecond).run(t); got.used < 0.9 || got.fair < 0.95 || got.lost != 0 {
		t.Errorf("%+v; want 90 %% used, fairness of 0.95 and no loss", got)
	} else {
		t.Logf("%+v", got)
	}
}

func TestTheSameSceneGivesTheSameResult(t *testing.T) {
	if a, b := newDumbbell(t, 2, false, 0).run(t), newDumbbell(t, 2, false, 0).run(t); a != b {
		t.Errorf("%+v and %+v", a, b)
	}
}

// Marks are only ever raised, packets that take no part stay as they are, and the checksum of IPv4 stays right.
func TestMarksSayTheHighestLoad(t *testing.T) {
	for _, family := range []struct{ from, to string }{{"fd01::1", "fd02::1"}, {"192.0.2.1", "198.51.100.1"}} {
		for old := Unmarked; old <= Overload; old++ {
			for to := Low; to <= Overload; to++ {
				raised(t, family.from, family.to, old, to)
			}
		}
	}
}

// raising raises the mark of all packets.
type raising struct {
	to  Level
	got []byte
}

func (x *raising) Process(r *emu.Router, batch []emu.Packet) {
	for i := range batch {
		raise(r, &batch[i], x.to)
		x.got = append([]byte(nil), r.Bytes(&batch[i])...)
		batch[i].Port = emu.Drop
	}
}

func raised(t *testing.T, from, to string, old, level Level) {
	t.Helper()
	n := emu.New(emu.Options{Virtual: true, Log: t.Errorf})
	defer n.Close()
	x := &raising{to: level}
	a, b := n.Router("a", &traffic.Sink{}), n.Router("b", x)
	if _, err := n.Link(a, b, [2]emu.Params{}); err != nil {
		t.Fatal(err)
	}
	ip := traffic.Datagram(netip.MustParseAddr(from), netip.MustParseAddr(to), 64, 7, 100)
	six := ip[0]>>4 == 6
	if six {
		ip[1] |= byte(old) << 4
	} else {
		ip[1] |= byte(old)
		ip[10], ip[11] = 0, 0
		binary.BigEndian.PutUint16(ip[10:], ^headerSum(ip))
	}
	if err := n.Run(0); err != nil {
		t.Fatal(err)
	}
	p, _ := a.New(ip)
	a.Send(p, 0)
	if err := n.Run(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	want := old
	if old != Unmarked {
		want = max(old, level)
	}
	if got := levelIn(x.got, six); got != want || !six && headerSum(x.got) != 0xffff {
		t.Errorf("%s marked %v at a link whose load is %v: %v, header % x", from, old, level, got, x.got[:20])
	}
}

func headerSum(ip []byte) uint16 {
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	return uint16(sum>>16 + sum&0xffff)
}
