package stripe

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// A world is two agents with a trunk between them, in virtual time: the streams of all sessions go from the near agent's
// end hosts to the far agent's.
type world struct {
	clock
	t        fatal
	strategy string
	memory   uint64
	blocks   uint32
	links    []link

	sender   *Sender
	receiver *Receiver
	sources  []*source
	wires    []*wire
	serial   Conn

	slotSize int              // bytes
	slots    map[uint32]*slot // the near agent's chunk memory, which outlives its worker
	taken    uint32
	pages    [][]byte // the far agent's

	anyhow    bool // STATE goes over any connection
	chunks    int  // frames of DATA that were sent
	wakes     map[int64]bool
	reborn    [2]bool // its worker began anew, and the peer has not heard so
	lastBytes time.Time
	gap       time.Duration // the longest time without new bytes in order
}

type fatal interface{ Fatalf(string, ...any) }

// A slot is memory of the near agent.
type slot struct {
	session uint64
	offset  uint64
	bytes   []byte
	full    int
}

// A source is one session: who writes at one end, and who reads at the other.
type source struct {
	session   uint64
	length    uint64 // bytes that it writes; then FIN
	cut       bool   // RST instead
	regrets   bool   // RST behind its FIN, at any time
	hold      bool   // neither
	grain     int    // bytes that it writes at a time, at most
	written   uint64 // that were read from it
	closed    bool   // its end was seen
	regretted bool   // so was the RST behind it
	slot      *slot
	number    uint32 // of the slot
	drain     float64
	paused    func(now time.Time) bool
	room      int // of the reader's socket, bytes
	got, read uint64
	drained   time.Time
	fin, rst  bool // what the reader saw
	done      bool
}

func content(session, offset uint64) byte {
	x := session*0x9e3779b97f4a7c15 + offset*0xbf58476d1ce4e5b9
	return byte(x >> 56)
}

func newWorld(t fatal, seed uint64, strategy string, links ...link) *world {
	w := &world{clock: newClock(seed), t: t, strategy: strategy, memory: 4 << 20, blocks: 256, links: links, slotSize: 48 << 10,
		slots: map[uint32]*slot{}, wakes: map[int64]bool{}}
	w.lastBytes = w.now
	w.sender = w.newSender()
	w.receiver = NewReceiver(w.blocks, w.rtt())
	w.pages = make([][]byte, w.blocks)
	for i := range links {
		w.dial(i)
	}
	return w
}

func (w *world) newSender() *Sender {
	s, err := StrategyNamed(w.strategy)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return NewSender(w.memory, s)
}

func (w *world) rtt() (most time.Duration) {
	for _, l := range w.links {
		most = max(most, 2*l.delay)
	}
	return most
}

// add opens a session.
func (w *world) add(s *source) {
	s.session = uint64(2 * (len(w.sources) + 1))
	if s.grain == 0 {
		s.grain = w.slotSize
	}
	if s.room == 0 {
		s.room = 256 << 10
	}
	credit, err := w.receiver.Open(s.session, 0)
	if err == nil {
		err = w.sender.Open(s.session, 0, credit)
	}
	if err != nil {
		w.t.Fatalf("session %d: %v", s.session, err)
	}
	s.drained = w.now
	w.sources = append(w.sources, s)
}

func (w *world) dial(i int) {
	c := newWire(w.links[i], w.serial)
	w.serial++
	w.wires = append(w.wires, c)
	w.sender.Connect(c.id, Measure{RTT: 2 * c.delay, Rate: c.rate})
}

// kill ends a connection with all that is on it; one like it comes after some time.
func (w *world) kill(c *wire, back time.Duration) {
	if c.dead {
		return
	}
	c.dead = true
	w.wires = remove(w.wires, c)
	w.sender.Disconnect(c.id)
	w.receiver.Repeat()
	if back >= 0 {
		w.after(back, func() {
			n := newWire(c.link, w.serial)
			w.serial++
			w.wires = append(w.wires, n)
			w.sender.Connect(n.id, Measure{RTT: 2 * c.delay, Rate: c.rate})
			w.hello(n)
		})
	}
}

func remove(all []*wire, c *wire) (rest []*wire) {
	for _, o := range all {
		if o != c {
			rest = append(rest, o)
		}
	}
	return rest
}

// hello is the first frame on a new connection: it says whose worker began anew, and then come RESUMEs.
func (w *world) hello(c *wire) {
	for side, reborn := range w.reborn {
		if !reborn {
			continue
		}
		w.reborn[side] = false
		for _, s := range w.sources {
			w.resume(c, side, s)
		}
		if side == 0 {
			w.receiver.PeerRestarted()
		} else {
			w.sender.PeerRestarted()
		}
	}
}

// resume sends a RESUME, and again where its connection dies.
func (w *world) resume(c *wire, side int, s *source) {
	if s.done {
		return
	}
	m := frame.Resume{Session: s.session}
	if side == 0 {
		m.Kept, m.Ended = w.sender.Kept(s.session)
	} else {
		m.Wanted, m.Acknowledged = w.receiver.Progress(s.session)
		m.Credit = w.receiver.Credit(s.session)
	}
	w.carry(c, side, packet{of: frame.TypeResume, resume: m}, func(p packet) {
		var err error
		if side == 0 {
			err = w.receiver.Resume(w.now, &p.resume)
		} else {
			err = w.sender.Resume(&p.resume)
		}
		w.must(err, p)
	})
}

func (w *world) must(err error, p packet) {
	if err != nil && !errors.Is(err, ErrRetired) {
		w.t.Fatalf("at %v: an honest peer's %v was refused: %v\n%s", w.now.Sub(time.Unix(0, 0)), p.of, err, w)
	}
}

// rebirth kills the worker of one side: 0 the sender's, 1 the receiver's. Its connections die with it.
func (w *world) rebirth(side int, back time.Duration) {
	for _, c := range append([]*wire(nil), w.wires...) {
		w.kill(c, back)
	}
	w.reborn[side] = true
	if side == 0 {
		w.rebornSender()
	} else {
		w.rebornReceiver()
	}
}

// rebornSender finds what the worker before it kept, and cuts it anew.
func (w *world) rebornSender() {
	old := w.sender
	w.sender = w.newSender()
	for _, s := range w.sources {
		r, _ := old.Kept(s.session)
		if s.done || old.Ended(s.session) {
			continue
		}
		w.must(w.sender.Open(s.session, r.From, 0), packet{})
		slots := w.found(s.session)
		for at := r.From; at < r.To; {
			in := find(w.t, slots, at)
			n := min(in.offset+uint64(in.full)-at, r.To-at, 1+w.random.Uint64N(uint64(w.slotSize)))
			w.sender.Push(s.session, Chunk{at, uint32(n), in.number, uint32(at - in.offset)})
			at += n
		}
		if s.closed && (s.cut || s.regretted) {
			w.sender.Abort(s.session, frame.Reset)
		} else if s.closed {
			w.sender.End(s.session)
		}
		w.sender.Restore(s.session)
		s.slot = nil
	}
	for _, number := range old.Freed() {
		delete(w.slots, number)
	}
}

// find is the slot that a byte lies in, and its number.
func find(t fatal, all []numbered, at uint64) numbered {
	i := sort.Search(len(all), func(i int) bool { return all[i].offset+uint64(all[i].full) > at })
	if i == len(all) || all[i].offset > at {
		t.Fatalf("byte %d is in no slot", at)
	}
	return all[i]
}

type numbered struct {
	*slot
	number uint32
}

// found are the slots of a session in their order.
func (w *world) found(session uint64) (all []numbered) {
	for number, in := range w.slots {
		if in.session == session {
			all = append(all, numbered{in, number})
		}
	}
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(a.offset, b.offset) })
	return all
}

// rebornReceiver knows what the kernel knows: what was written to the readers' sockets.
func (w *world) rebornReceiver() {
	old := w.receiver
	w.receiver = NewReceiver(w.blocks, w.rtt())
	w.pages = make([][]byte, w.blocks)
	for _, s := range w.sources {
		if !s.done {
			_, acknowledged := old.Progress(s.session)
			_, err := w.receiver.Open(s.session, s.got)
			w.must(err, packet{})
			w.receiver.Restore(s.session, acknowledged)
		}
	}
	w.receiver.Repeat()
}

func (w *world) String() string {
	text := ""
	for _, s := range w.sources {
		o, in := w.sender.streams[s.session], w.receiver.streams[s.session]
		text += fmt.Sprintf("session %d: wrote %d of %d, got %d, read %d, fin %v, rst %v\n", s.session, s.written, s.length, s.got, s.read, s.fin, s.rst)
		if o != nil && in != nil {
			text += fmt.Sprintf("  sender: kept %d to %d, credit %d, %d chunks, next %d, again %d, end %+v, room %d\n  receiver: arrived %d %v, delivered %d, credit %d, end %v %d\n",
				o.from, o.tail, o.credit, o.chunks.len(), o.next, o.again, o.end, w.sender.Room(s.session), in.arrived, in.beyond, in.delivered, in.credit, in.kind, in.end)
		}
	}
	return text + fmt.Sprintf("%d connections, %+v, %d blocks", len(w.wires), w.sender.Counts, w.receiver.Reserved())
}
