package stripe

import (
	"fmt"
	"testing"
	"time"
)

// overPaths is a world with one session over connections of several paths, with memory for as much as these carry.
func overPaths(t *testing.T, strategy string, connections int, paths ...link) (*world, *source) {
	t.Helper()
	w := newWorld(t, 1, strategy)
	for range connections {
		for _, l := range paths {
			l.rate /= float64(connections)
			w.links = append(w.links, l)
		}
	}
	w.memory, w.blocks, w.slotSize = 64<<20, 64<<20/Block, MinChunk
	w.sender, w.receiver, w.pages = w.newSender(), NewReceiver(w.blocks, w.rtt()), make([][]byte, w.blocks)
	for i := range w.links {
		w.dial(i)
	}
	s := &source{length: 100e6, room: 4 << 20}
	w.add(s)
	return w, s
}

// far are two paths of 300 and 200 Mbit/s, of 20 and 60 ms there and back.
var far = []link{{rate: 37.5e6, delay: 10 * ms}, {rate: 25e6, delay: 30 * ms}}

func TestECFFillsPathsOfOtherDelaysAndRates(t *testing.T) {
	for _, connections := range []int{1, 4} {
		w, s := overPaths(t, "ecf", connections, far...)
		for s.got < s.length/10 { // until the window is as large as the paths
			w.pump()
			w.step()
		}
		from, got := w.now, s.got
		for s.got < s.length*9/10 {
			w.pump()
			w.step()
		}
		if rate := float64(s.got-got) / w.now.Sub(from).Seconds(); rate < 0.95*62.5e6 {
			t.Errorf("%d connections for each path: %.1f MB/s, of 62.5 (%+v)", connections, rate/1e6, w.sender.Counts)
		}
		w.run(time.Hour)
		w.settle()
	}
}

// A path that carries nothing any more takes nothing of the stream with it, and the other one carries the rest. The reader waits
// until it is doubted for what it had taken, and not until it is known to be gone.
func TestAStreamOutlivesAPathThatIsSilent(t *testing.T) {
	for _, connections := range []int{1, 4} {
		for lost := range far {
			t.Run(fmt.Sprint(connections, " connections each, path ", lost, " of ", len(far)), func(t *testing.T) {
				w, s := overPaths(t, "ecf", connections, far...)
				w.after(500*ms, func() {
					for i, c := range append([]*wire(nil), w.wires...) {
						if i%len(far) != lost {
							continue
						}
						c.delay = time.Minute
						w.after(300*ms, func() { w.sender.Measure(c.id, Measure{RTT: 2 * far[lost].delay, Rate: 1}) }) // its timer has fired
						w.after(900*ms, func() { w.sender.Doubt(c.id, true) })                                         // and twice again
						w.after(2*time.Second, func() { w.kill(c, -1) })
					}
				})
				w.run(time.Hour) // which compares all bytes
				w.settle()
				rest := far[1-lost].rate
				if took, most := w.now.Sub(time.Unix(0, 0)), 2500*ms+time.Duration(float64(s.length)/rest*float64(time.Second)); took > most || w.gap > 1100*ms {
					t.Errorf("it took %v, of %v, and stood still for %v (%+v)", took, most, w.gap, w.sender.Counts)
				}
				t.Logf("%v, stood still for %v, %+v", w.now.Sub(time.Unix(0, 0)), w.gap, w.sender.Counts)
			})
		}
	}
}

// Whatever the strategy, nothing waits for a connection that is doubted; what comes of it after all is a copy, and once it answers
// it takes its part again.
func TestNothingWaitsForAConnectionThatIsDoubted(t *testing.T) {
	l := link{rate: 5e6, delay: 10 * ms}
	for _, strategy := range Strategies {
		t.Run(strategy, func(t *testing.T) {
			had := 0
			w, took := transfer(t, strategy, 20e6, func(w *world) {
				c := w.wires[0]
				w.after(200*ms, func() { c.delay = time.Second })
				w.after(500*ms, func() { w.sender.Doubt(c.id, true) })
				w.after(1500*ms, func() { c.delay = l.delay; w.sender.Doubt(c.id, false); had = c.delivered })
			}, l, l)
			if alone := 20e6 / l.rate; took.Seconds() > alone+1 && strategy != "redundant" {
				t.Errorf("it took %v, over the other one alone %v s (%+v)", took, alone, w.sender.Counts)
			}
			if w.wires[0].delivered <= had {
				t.Errorf("it brought %d bytes until it was believed again, and %d in the end", had, w.wires[0].delivered)
			}
		})
	}
}

// A connection is doubted, and the others rest: nobody could take what is on it, so all goes on as it was.
func TestAConnectionIsNotDoubtedForOnesThatRest(t *testing.T) {
	s, now := resting(t, pull{})
	s.Doubt(1, true)
	s.Push(2, Chunk{50_000, 1000, 50, 0})
	if f, ok := s.Next(now, 1); !ok || f.Offset != 50_000 {
		t.Errorf("beside one that rests nothing new goes out: %+v", f)
	}
	s.Rest(2, false)
	s.Doubt(1, true)
	if f, ok := s.Next(now, 1); ok {
		t.Errorf("beside one that carries it takes %+v", f)
	}
	if f, ok := s.Next(now, 2); !ok || f.Offset != 49_000 {
		t.Errorf("what went out on it is not the next thing on the other one: %+v", f)
	}
}
