package emu

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"
)

// stream sends n pseudo-random bytes from a to b and compares what arrives.
func stream(t *testing.T, r *rig, n int) {
	t.Helper()
	client, server := r.dial(t)
	sent := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(sent)
	go func() {
		client.Write(sent)                                    // the reader tells
		client.(interface{ CloseWrite() error }).CloseWrite() // the reader tells
	}()
	server.SetReadDeadline(time.Now().Add(time.Minute))
	got, err := io.ReadAll(server)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d of %d bytes arrived, equal: %t, %v; %+v", len(got), n, bytes.Equal(got, sent), err, r.line(t))
	}
}

func TestAStreamArrivesByteForByte(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for name, p := range map[string]Params{
		"clean":       {},
		"delay":       {Delay: 20 * time.Millisecond},
		"trains cut":  {Rate: 1e9, Delay: time.Millisecond},
		"packet wise": {Rate: 1e8, Queue: 1 << 18},
		"loss":        {Delay: 2 * time.Millisecond, Loss: 0.01, Seed: 7},
		"everything": {Rate: 1e9, Delay: 2 * time.Millisecond, Jitter: time.Millisecond, Loss: 0.005, BurstLoss: 0.005, Burst: 3,
			Duplicate: 0.02, Reorder: 0.02, Seed: 7},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, p)
			stream(t, r, 1<<21)
			l := r.line(t)
			if want := p; l.Counters.Lost+l.Counters.LostBurst != predict(want, l.Counters.Packets) {
				t.Errorf("lost %d+%d of %d packets; the seed says %d", l.Counters.Lost, l.Counters.LostBurst, l.Counters.Packets, predict(want, l.Counters.Packets))
			}
			if l.Refused > r.refused || l.Starved > 0 {
				t.Errorf("refused %d, starved %d", l.Refused, l.Starved)
			}
			t.Logf("%+v", l)
		})
	}
}

func predict(p Params, n uint64) uint64 {
	p.Seed = Seeds(p.Seed)[0]
	return p.Predict(n)
}

func BenchmarkStream(b *testing.B) {
	for name, p := range map[string]Params{"clean": {}, "10Gbit-10ms": {Rate: 1e10, Delay: 10 * time.Millisecond}, "1Gbit": {Rate: 1e9, Delay: time.Millisecond}} {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, p)
			client, server := r.dial(b)
			block := make([]byte, 1<<17)
			b.SetBytes(int64(len(block)))
			b.ResetTimer()
			go func() {
				for range b.N {
					if _, err := client.Write(block); err != nil {
						return
					}
				}
			}()
			if _, err := io.CopyN(io.Discard, server, int64(b.N)*int64(len(block))); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			b.Logf("%+v", r.line(b))
		})
	}
}
