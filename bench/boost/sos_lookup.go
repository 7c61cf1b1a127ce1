package boost

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"scaffold.dev/scaffold/bench/sos"
	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/core/stripe"
)

var sosLookup = SosExperiment{
	About: sos.Result{
		Name: "sos_lookup", Title: "Putting a stream in order again", Thesis: "table 3.2.1",
		Setting: "The thesis gives the time of so many lookups in the Java HashMap that holds its chunks, citing a page of the web; of its four versions of Java this table has 8, the one it chose. Beside it a Go map: lookups alone, then what an agent would need for each chunk (put, look up whether the next one is there, delete), 32 on their way; then the receiving half of our trunk (core/stripe), which has no map of chunks: a chunk's place is its offset, and only gaps are remembered. It gets the same chunks in order, and 32 at a time in an order by chance.",
		Lacks:   "Machines differ, so the sizes cannot be compared with the thesis', only how each grows. One thread runs at a time: two processors lack nothing here.",
		Log:     true,
	},
	run: (*sosRun).lookup,
}

const (
	sosWay   = 32       // chunks on their way at a time
	sosChunk = 16 << 10 // bytes of one: the least that agents make
)

// sosJava8 are the thesis' times in ms, by the number of records.
var sosJava8 = map[int]float64{10_000: 16, 100_000: 176, 1_000_000: 1225, 10_000_000: 5773}

// lookup measures each structure at each number of records.
func (r *sosRun) lookup(ctx context.Context) error {
	sizes := []int{10_000, 100_000, 1_000_000, 10_000_000}
	if r.opt.Quick {
		sizes = sizes[:2]
	}
	for _, n := range sizes {
		of := fmt.Sprintf("%d records", n)
		for _, w := range []struct {
			name   string
			run    func(n int) (time.Duration, error)
			thesis float64
		}{
			{"lookups in a map", mapLookups, sosJava8[n]},
			{"a map of chunks, by chance", mapOfChunks, 0},
			{"core/stripe, in order", func(n int) (time.Duration, error) { return striped(n, false) }, 0},
			{"core/stripe, by chance", func(n int) (time.Duration, error) { return striped(n, true) }, 0},
		} {
			var all []outcome
			for range r.opt.Runs {
				if err := ctx.Err(); err != nil {
					return err
				}
				took, err := w.run(n)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", of, w.name, err)
				}
				all = append(all, outcome{value: took.Seconds() * 1e3})
			}
			r.put(of, w.name, "ms", w.thesis, all...)
		}
	}
	return nil
}

// mapLookups is how long it takes to look each of so many records up.
func mapLookups(n int) (time.Duration, error) {
	m := make(map[uint64]uint32, n)
	for i := range n {
		m[uint64(i)*sosChunk] = uint32(i)
	}
	began := time.Now()
	var sum uint64
	for i := range n {
		sum += uint64(m[uint64(i)*sosChunk])
	}
	took := time.Since(began)
	if want := uint64(n) * uint64(n-1) / 2; sum != want {
		return 0, fmt.Errorf("the records' sum is %d, want %d", sum, want)
	}
	return took, nil
}

// shuffled are the places of chunks that are on their way together, in an order by chance, the same one each time.
func shuffled() []int { return rand.New(rand.NewPCG(1, 2)).Perm(sosWay) }

// mapOfChunks is how long a map takes that has the chunks which came too early.
func mapOfChunks(n int) (time.Duration, error) {
	order, m, next := shuffled(), map[uint64]uint32{}, uint64(0)
	began := time.Now()
	for at := 0; at < n; at += sosWay {
		for _, i := range order {
			if at+i >= n {
				continue
			}
			m[uint64(at+i)*sosChunk] = uint32(i)
			for {
				if _, ok := m[next]; !ok {
					break
				}
				delete(m, next)
				next += sosChunk
			}
		}
	}
	took := time.Since(began)
	if next != uint64(n)*sosChunk {
		return 0, fmt.Errorf("%d bytes are in order, want %d", next, uint64(n)*sosChunk)
	}
	return took, nil
}

// sosRoom is the receiver's memory in blocks: more than its window grows to. No byte is put there.
const sosRoom = 1 << 16

// striped is how long the receiver of a trunk takes, from each chunk's arrival to its acknowledgement by the end host.
func striped(n int, early bool) (took time.Duration, err error) {
	const session = 2
	now := time.Unix(0, 0)
	r := stripe.NewReceiver(sosRoom, time.Millisecond)
	if _, err := r.Open(session, 0); err != nil {
		return 0, err
	}
	order := shuffled()
	if !early {
		for i := range order {
			order[i] = i
		}
	}
	places, done := make([]stripe.Place, 0, 2*sosWay), uint64(0)
	began := time.Now()
	for at := 0; at < n; {
		way := int(min((r.Credit(session)-done)/sosChunk, sosWay)) // fewer until the window has grown
		for _, i := range order {
			if i >= way || at+i >= n {
				continue
			}
			if _, err := r.Arrive(now, frame.Chunk(session, uint64(at+i)*sosChunk, sosChunk), places[:0]); err != nil {
				return 0, err
			}
			done += delivered(r, now, session, places)
		}
		at += way
		r.Acknowledged(now, session, done, false)
		for {
			if _, ok := r.Next(now); !ok {
				break
			}
		}
		now = now.Add(time.Millisecond)
	}
	took = time.Since(began)
	if done != uint64(n)*sosChunk {
		return 0, fmt.Errorf("%d bytes are in order, want %d", done, uint64(n)*sosChunk)
	}
	return took, nil
}

// delivered is how many bytes were ready, and are delivered now.
func delivered(r *stripe.Receiver, now time.Time, session uint64, places []stripe.Place) (all uint64) {
	for {
		n := 0
		for _, p := range r.Deliver(session, places).Places {
			n += int(p.Length)
		}
		if n == 0 {
			return all
		}
		r.Delivered(now, session, n)
		all += uint64(n)
	}
}
