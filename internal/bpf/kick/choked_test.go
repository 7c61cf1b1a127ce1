package kick

import (
	"errors"
	"io"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// Two connections wait behind a queue of their own host that takes nothing. The kernel gives up the one; the other,
// which is kicked whenever it is found choked, is there when the queue takes packets again.
func TestWhatItsOwnHostChokesIsNotGivenUp(t *testing.T) {
	w := newWorld(t)
	w.mover.Run(t, "sysctl", "-qw", "net.ipv4.tcp_retries2=4") // not fifteen: the test is sooner over
	kept, lost := w.connect(), w.connect()
	k := openIn(t, w.mover)
	exchange(t, kept.mover, kept.other, "hello") // the neighbour is known
	exchange(t, lost.mover, lost.other, "hello")
	await(t, k, lost.mover, "acknowledged", func(s Socket) bool { return s.InFlight() == 0 })
	w.mover.Run(t, "tc", "qdisc", "replace", "dev", "up", "root", "bfifo", "limit", "1")
	for _, c := range []conn{kept, lost} {
		if _, err := io.WriteString(c.mover, "world"); err != nil {
			t.Fatal(err)
		}
		await(t, k, c.mover, "queued, nothing in flight", func(s Socket) bool { return s.InFlight() == 0 && s.Queued() == 5 })
	}
	choked := 0
	nstest.Wait(t, "ss -tanie, tc -s qdisc in the namespace of the mover", func() error {
		if s := one(t, k, kept.mover); s.Choked() {
			choked++
			if _, err := k.Kick(SetOf(tupleOf(kept.mover))); err != nil {
				t.Fatal(err)
			}
		}
		if all, err := k.State(tupleOf(lost.mover)); err != nil || len(all) > 0 {
			return errors.Join(err, errors.New("the kernel has not given up the connection that nobody kicks"))
		}
		return nil
	})
	if choked == 0 {
		t.Error("the connection that was kicked was never found choked")
	}
	w.mover.Run(t, "tc", "qdisc", "del", "dev", "up", "root")
	got := make([]byte, 5)
	if _, err := io.ReadFull(kept.other, got); err != nil || string(got) != "world" {
		t.Errorf("after the queue opened: read %q, %v", got, err)
	}
}
