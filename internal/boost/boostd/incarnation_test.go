package boostd

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/boost/keeper"
)

// stored is a keeper's side of it.
type stored struct {
	t     *testing.T
	found []keeper.Found
}

func (s *stored) Found() []keeper.Found { return s.found }

func (s *stored) Hold(key string, value []byte, fds ...int) error {
	own, err := unix.Dup(fds[0])
	s.t.Cleanup(func() { unix.Close(own) })
	s.found = []keeper.Found{{Key: key, Value: value, FDs: []int{own}}}
	return err
}

// A worker has numbers above those of the one before, although the clock was set back by an hour meanwhile.
func TestTheNextWorkerHasHigherNumbers(t *testing.T) {
	s := &stored{t: t}
	now := time.Unix(1.8e9, 0)
	last := uint64(0)
	for i, at := range []time.Time{now, now.Add(-time.Hour), now.Add(-time.Hour), now.Add(time.Hour)} {
		got, err := incarnation(at, s)
		if err != nil {
			t.Fatal(err)
		}
		if got < last || i > 0 && got-last < numbersOfOne {
			t.Errorf("worker %d has %d, the one before %d", i, got, last)
		}
		last = got
	}
	if last != uint64(now.Add(time.Hour).UnixNano()) {
		t.Errorf("where the clock is ahead it counts: %d", last)
	}
}
