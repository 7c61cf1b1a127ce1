package kick

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A peer reads nothing, and its window closes. Kicks, however many, do not keep the kernel from asking whether it has
// opened: what the peer said when it opened may have been lost.
func TestKicksLeaveAClosedWindowItsProbes(t *testing.T) {
	w := newWorld(t)
	c, k := w.connect(), openIn(t, w.mover)
	exchange(t, c.mover, c.other, "hello")
	go io.Copy(c.mover, endless{}) // ends with the connection
	closed := await(t, k, c.mover, "waiting for a closed window", func(s Socket) bool {
		return s.InFlight() == 0 && s.Timer == WindowProbe && !s.fits()
	})
	before := w.probes()
	nstest.Wait(t, "ss -tinoe, TCPWinProbe in /proc/net/netstat, in the namespace of the mover: "+closed.String(), func() error {
		if _, err := k.Kick(SetOf(tupleOf(c.mover))); err != nil {
			t.Fatal(err)
		}
		if n := w.probes() - before; n < 3 {
			return fmt.Errorf("%d probes of the window were sent", n)
		}
		return nil
	})
	if s := one(t, k, c.mover); s.Stalled() > 0 && s.Probes == 0 {
		t.Errorf("it counts as stalled while its peer answers: %v", s)
	}
}

// probes is how many probes of a closed window the mover's kernel has sent.
func (w *world) probes() int {
	w.t.Helper()
	var names []string
	for _, line := range strings.Split(w.mover.Run(w.t, "cat", "/proc/net/netstat"), "\n") {
		words := strings.Fields(line)
		if i := slices.Index(names, "TCPWinProbe"); i >= 0 {
			n, err := strconv.Atoi(words[i])
			if err != nil {
				w.t.Fatal(err)
			}
			return n
		}
		names = words
	}
	w.t.Fatal("/proc/net/netstat has no TCPWinProbe")
	return 0
}

// endless is a stream of zeros.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }
