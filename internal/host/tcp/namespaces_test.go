package tcp

import (
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/sid"
)

// nobody hears what is found.
type nobody struct{}

func (nobody) Waiting(time.Time, uint16, []kick.Socket) {}
func (nobody) Silent(uint16, []kick.Socket)             {}

func connection(guest uint16) host.Tuple {
	return host.Tuple{Local: netip.MustParseAddrPort("[fd5e::1]:4000"), Remote: netip.MustParseAddrPort("[fd5c::1]:80"), Proto: sid.TCP, Guest: guest}
}

// Who waits for a connection of a guest that is gone hears, in the loop, that there is none: nothing waits for ever.
func TestAGuestThatIsGoneHasNoConnections(t *testing.T) {
	var posted []func()
	n := New(t.Context(), slog.New(slog.DiscardHandler), func(f func()) { posted = append(posted, f) }, nobody{})
	told, reset := 0, false
	n.Read(connection(7), func(c *kick.Socket) {
		if told++; c != nil {
			t.Errorf("there is %+v", c)
		}
	})
	n.ResetThen(connection(7), func() { reset = true })
	n.Kick([]host.Tuple{connection(7)})
	n.End([]host.Tuple{connection(7)})
	if told != 0 || reset {
		t.Error("it is told beside the loop")
	}
	for _, f := range posted {
		f()
	}
	if told != 1 || !reset {
		t.Errorf("told %d times, reset %v: want both once", told, reset)
	}
	if c, sure := n.Look(connection(7)); c != nil || !sure {
		t.Errorf("a look finds %v, sure %v: want surely none", c, sure)
	}
}

// What is asked for is collected for the next look, each connection once, and those of a guest are not the host's.
func TestWhatIsAskedForWaitsForOneLook(t *testing.T) {
	n := New(t.Context(), slog.New(slog.DiscardHandler), func(func()) {}, nobody{})
	n.guests[1] = newStack(n.own.log, n.own.post, n.own.hear)
	for range 3 {
		n.Kick([]host.Tuple{connection(0), connection(1)})
		n.Reset([]host.Tuple{connection(1)})
	}
	n.Read(connection(0), func(*kick.Socket) {})
	for what, c := range map[string]struct{ got, want int }{
		"kicks of the host":   {len(n.own.todo.kicks), 1},
		"resets of the host":  {len(n.own.todo.resets), 0},
		"reads of the host":   {len(n.own.todo.reads), 1},
		"wakes of the host":   {len(n.own.wake), 1},
		"kicks of the guest":  {len(n.guests[1].todo.kicks), 1},
		"resets of the guest": {len(n.guests[1].todo.resets), 1},
		"reads of the guest":  {len(n.guests[1].todo.reads), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", what, c.got, c.want)
		}
	}
	if _, sure := n.Look(connection(0)); sure {
		t.Error("without a way to ask the kernel nothing is sure")
	}
}

// Of very many silent connections the loop hears of some, each as likely as the others: those that came first are not always
// among them.
func TestOfManySilentConnectionsSomeAreTold(t *testing.T) {
	var list []kick.Socket
	for i := range 20 * mostSilent {
		list = sample(list, &kick.Socket{SndUna: uint32(i)}, i+1)
	}
	if len(list) != mostSilent {
		t.Fatalf("%d are told, want %d", len(list), mostSilent)
	}
	early := 0
	for i := range list {
		if list[i].SndUna < mostSilent {
			early++
		}
	}
	if early > mostSilent/4 { // a twentieth is expected
		t.Errorf("%d of %d are of the first %d", early, len(list), mostSilent)
	}
}
