package stripe

import (
	"fmt"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// sizes and connections of the benchmarks.
var (
	benchSizes = map[string]uint32{"64KiB": 64 << 10, "1MiB": 1 << 20}
	benchConns = []int{1, 8, 32}
)

func each(b *testing.B, run func(b *testing.B, size uint32, conns int)) {
	for _, name := range []string{"64KiB", "1MiB"} {
		for _, n := range benchConns {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				run(b, benchSizes[name], n)
			})
		}
	}
}

// A sending is a sender with 64 chunks on their way, as a driver has it in the middle of a transfer.
type sending struct {
	*Sender
	now    time.Time
	size   uint32
	conns  int
	offset uint64
	told   uint64
	slots  []uint32
	turn   int
	state  frame.State
}

func newSending(size uint32, conns int) *sending {
	x := &sending{Sender: NewSender(1<<40, pull{}), now: time.Unix(0, 0), size: size, conns: conns}
	for i := range conns {
		x.Connect(Conn(i), Measure{RTT: 50 * ms, Rate: 1e9})
	}
	if err := x.Open(2, 0, 1<<50); err != nil {
		panic(err)
	}
	for i := range uint32(128) {
		x.slots = append(x.slots, i)
	}
	for range 64 {
		x.push()
	}
	return x
}

func (x *sending) push() {
	slot := x.slots[len(x.slots)-1]
	x.slots = x.slots[:len(x.slots)-1]
	x.Push(2, Chunk{Offset: x.offset, Length: x.size, Slot: slot})
	x.offset += uint64(x.size)
	x.turn++
	if _, ok := x.Next(x.now, Conn(x.turn%x.conns)); !ok {
		panic("nothing to send")
	}
}

// step reads a chunk, sends it, and hears every eighth time of eight that were acknowledged.
func (x *sending) step() {
	x.push()
	if x.turn%8 == 0 {
		x.told += 8 * uint64(x.size)
		x.state = frame.State{Session: 2, Acknowledged: x.told, Arrived: x.told, Credit: 1 << 50}
		if err := x.State(&x.state); err != nil {
			panic(err)
		}
		x.slots = append(x.slots, x.Freed()...)
		x.now = x.now.Add(ms)
	}
}

func BenchmarkSender(b *testing.B) {
	each(b, func(b *testing.B, size uint32, conns int) {
		x := newSending(size, conns)
		b.SetBytes(int64(size))
		for b.Loop() {
			x.step()
		}
	})
}

// A receiving is a receiver whose chunks come over several connections: each a little out of order.
type receiving struct {
	*Receiver
	now    time.Time
	size   uint32
	conns  int
	at     uint64 // chunks
	places []Place
}

func newReceiving(size uint32, conns int) *receiving {
	x := &receiving{Receiver: NewReceiver(1<<20, 50*ms), now: time.Unix(0, 0), size: size, conns: conns, places: make([]Place, 0, 8192)}
	if _, err := x.Open(2, 0); err != nil {
		panic(err)
	}
	in := x.streams[2]
	in.rate.bytes = uint64(size) * uint64(conns) * 2
	x.grant(in)
	return x
}

// round takes one chunk from each connection, the last one first, and delivers them all.
func (x *receiving) round() {
	x.streams[2].rate.bytes = uint64(x.size) * uint64(x.conns) * 2 // so fast
	for i := x.conns - 1; i >= 0; i-- {
		var err error
		if x.places, err = x.Arrive(x.now, frame.Chunk(2, (x.at+uint64(i))*uint64(x.size), x.size), x.places[:0]); err != nil {
			panic(err)
		}
	}
	x.at += uint64(x.conns)
	for {
		n := total(x.Deliver(2, x.places).Places)
		if n == 0 {
			break
		}
		x.Delivered(x.now, 2, n)
	}
	x.Acknowledged(x.now, 2, x.at*uint64(x.size), false)
	for {
		if _, ok := x.Next(x.now); !ok {
			break
		}
	}
	x.now = x.now.Add(ms)
}

func BenchmarkReceiver(b *testing.B) {
	each(b, func(b *testing.B, size uint32, conns int) {
		x := newReceiving(size, conns)
		b.SetBytes(int64(size))
		n := 0
		for b.Loop() {
			if n%conns == 0 { // one chunk a turn, as many at a time as there are connections
				x.round()
			}
			n++
		}
	})
}

func TestNothingIsAllocatedForAChunk(t *testing.T) {
	s, r := newSending(64<<10, 8), newReceiving(64<<10, 8)
	for name, run := range map[string]func(){"sender": s.step, "receiver": r.round} {
		for range 1000 { // queues grow to what they need
			run()
		}
		if n := testing.AllocsPerRun(1000, run); n != 0 {
			t.Errorf("%s: %v allocations a chunk, want none", name, n)
		}
	}
}
