package emubench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/traffic"
)

// A String is a source, routers in a row and a sink inside the engine, in virtual time: the set-up of the MX paper's
// Figure 4, without interfaces.
type String struct {
	Routers int
	Frame   int // bytes of an Ethernet frame without checksum
	Mode    Mode
	Links   emu.Params // of every link, both ways
	Shards  []int      // of each router; nil: all in one
}

// A Speed is what a string did.
type Speed struct {
	Hops uint64        // routers times packets that arrived
	CPU  time.Duration // of this process, source and sink included
	Wall time.Duration
}

// PerCPU is millions of router-hops for each second of processor time.
func (s Speed) PerCPU() float64 { return float64(s.Hops) / 1e6 / s.CPU.Seconds() }

// Traffic of a string: to many destinations in random order, of which each router knows the way to every one.
const (
	prefixes     = 1000
	destinations = 4096
	burst        = 64
)

// gap is between two bursts: 10 Mpps in virtual time where nothing is on its way for long, 1 Mpps with emulated links,
// of which the longest string then holds 13,000 packets.
func (s String) gap() time.Duration {
	if s.Links == (emu.Params{}) {
		return burst * 100 * time.Nanosecond
	}
	return burst * time.Microsecond
}

// build makes the network.
func (s String) build() (*emu.Net, *traffic.Source, *traffic.Sink, error) {
	n := emu.New(emu.Options{Virtual: true, Shards: s.shards()})
	source := &traffic.Source{From: address(0, left), To: someDestinations(), Size: s.Frame, Gap: s.gap(), Burst: burst, Hop: hopLimit}
	sink := &traffic.Sink{}
	from, to := n.Router("source", source), n.Router("sink", sink)
	r := row{from: from, to: to, routers: s.Routers, mode: s.Mode, links: both(s.Links), beyond: somePrefixes()}
	if err := r.join(n); err != nil {
		return nil, nil, nil, err
	}
	s.pin(n)
	return n, source, sink, nil
}

// pin forces the placement; source and sink are with the routers next to them.
func (s String) pin(n *emu.Net) {
	if len(s.Shards) == 0 {
		return
	}
	all := n.Routers()
	all[0].Pin(s.Shards[0])
	all[1].Pin(s.Shards[len(s.Shards)-1])
	for i, at := range s.Shards {
		all[2+i].Pin(at)
	}
}

func (s String) shards() int {
	most := 0
	for _, at := range s.Shards {
		most = max(most, at)
	}
	return most + 1
}

// Run sends so many packets through the string after a warm-up, and says what that took.
func (s String) Run(ctx context.Context, count uint64) (Speed, error) {
	n, source, sink, err := s.build()
	if err != nil {
		return Speed{}, err
	}
	defer n.Close()
	if err := s.send(n, source, sink, warmUp); err != nil {
		return Speed{}, err
	}
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	wall, cpu := time.Now(), processTime()
	if err := s.send(n, source, sink, count); err != nil {
		return Speed{}, err
	}
	return Speed{Hops: count * uint64(s.Routers), CPU: processTime() - cpu, Wall: time.Since(wall)}, ctx.Err()
}

// warmUp is how many packets go first.
const warmUp = 20000

// send lets count more packets go from end to end.
func (s String) send(n *emu.Net, source *traffic.Source, sink *traffic.Sink, count uint64) error {
	bursts := time.Duration((count + burst - 1) / burst)
	source.Count += uint64(bursts) * burst
	n.Routers()[0].Swap(source)
	path := time.Duration(s.Routers+1) * (s.Links.Delay + time.Millisecond)
	if err := n.Run(n.Now() + bursts*s.gap() + path); err != nil {
		return err
	}
	if sink.Packets != source.Sent {
		return fmt.Errorf("string of %d routers: %d of %d packets arrived", s.Routers, sink.Packets, source.Sent)
	}
	return nil
}

// processTime is the processor time of this process.
func processTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic("CLOCK_PROCESS_CPUTIME_ID: " + err.Error()) // every Linux has it
	}
	return time.Duration(t.Nano())
}

// somePrefixes are as a small provider's table: seven of ten a /48, two a /56, one a /64.
func somePrefixes() []netip.Prefix {
	rng := rand.New(rand.NewPCG(1, 2))
	var all []netip.Prefix
	for i := range prefixes {
		b := [16]byte{0: 0x20, 1: 0x01, 2: byte(i >> 8), 3: byte(i), 4: byte(rng.Uint32()), 5: byte(rng.Uint32())}
		bits := 48
		switch {
		case i%10 >= 9:
			b[6], b[7], bits = byte(rng.Uint32()), byte(rng.Uint32()), 64
		case i%10 >= 7:
			b[6], bits = byte(rng.Uint32()), 56
		}
		all = append(all, netip.PrefixFrom(netip.AddrFrom16(b), bits))
	}
	return all
}

// someDestinations are addresses in the prefixes, in random order.
func someDestinations() []netip.Addr {
	rng := rand.New(rand.NewPCG(3, 4))
	in := somePrefixes()
	var all []netip.Addr
	for range destinations {
		b := in[rng.IntN(len(in))].Addr().As16()
		for i := 8; i < 16; i++ {
			b[i] = byte(rng.Uint32())
		}
		all = append(all, netip.AddrFrom16(b))
	}
	return all
}
