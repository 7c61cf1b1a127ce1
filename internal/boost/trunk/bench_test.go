package trunk

import (
	"io"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// BenchmarkStream is one stream through two agents over loopback, with all three of its connections: seconds of processor
// for a gigabyte are those of both agents and of the two ends.
func BenchmarkStream(b *testing.B) {
	for _, p := range []frame.Protection{frame.None, frame.Authenticated, frame.Sealed} {
		b.Run(p.String(), func(b *testing.B) {
			r := newRig(b, 1, func(c *Config) { c.Protection = p })
			client, server := r.dial()
			client.SetDeadline(time.Time{})
			server.SetDeadline(time.Time{})
			part := make([]byte, 1<<20)
			b.SetBytes(int64(len(part)))
			began := cpu(b)
			b.ResetTimer()
			go func() {
				for range b.N {
					if _, err := client.Write(part); err != nil {
						return
					}
				}
			}()
			if _, err := io.CopyN(io.Discard, server, int64(b.N*len(part))); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric((cpu(b)-began).Seconds()/(float64(b.N)*float64(len(part))/1e9), "cpu-s/GB")
		})
	}
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkLook is what one look at a session takes.
func BenchmarkLook(b *testing.B) {
	r := newRig(b, 0)
	r.near.mu.Lock()
	defer r.near.mu.Unlock()
	for i := range 10_000 {
		r.near.sessions[uint64(i)] = &Session{t: r.near, id: uint64(i), state: streaming}
	}
	now := time.Now()
	for b.Loop() {
		now = now.Add(measured)
		r.near.look(now, time.Millisecond)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/session")
	clear(r.near.sessions)
}
