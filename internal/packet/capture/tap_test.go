package capture

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// watch opens a tap in a namespace.
func watch(n *nstest.NS, device string, snap int) (tap *Tap, err error) {
	n.Do(func() { tap, err = Open(device, space, snap) })
	return tap, err
}

func TestMain(m *testing.M) { nstest.Main(m) }

// What one interface sends, that one and its peer's tap see, whole and with their direction; what is not the
// network's neither sees.
func TestATapSeesBothDirections(t *testing.T) {
	nstest.Root(t)
	a, b := nstest.New(t, "a"), nstest.New(t, "b")
	nstest.Veth(t, a, "up0", b, "down0")
	sends, err := watch(a, "up0", whole)
	if err != nil {
		t.Fatal(err)
	}
	defer sends.Close()
	receives, err := watch(b, "down0", 60)
	if err != nil {
		t.Fatal(err)
	}
	defer receives.Close()
	frames := a.Frames(t, "up0")
	alien := netip.MustParseAddr("2001:db8::1")
	packet := tcp(p, r, 41234, 80, bpftest.ACK)
	for _, x := range []bpftest.Packet{tcp(alien, alien, 1, 2, 0), packet} {
		frames.Send(t, append([]byte{0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd}, x.Bytes()...))
	}
	whole := packet.Bytes()
	for tap, out := range map[*Tap]bool{sends: true, receives: false} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		got, err := tap.Next(ctx)
		if err != nil {
			t.Fatalf("sender %v: %v", out, err)
		}
		if got.Out != out || got.Length != len(whole) || string(got.Data) != string(whole[:min(len(whole), len(tap.buffer))]) {
			t.Errorf("sender %v: out %v, %d bytes %x; want %d bytes %x", out, got.Out, got.Length, got.Data, len(whole), whole)
		}
		if age := time.Since(got.At); age < 0 || age > time.Minute {
			t.Errorf("the packet is %v old", age)
		}
		if tap.Lost() != 0 {
			t.Error("packets were lost")
		}
	}
}

// An uplink that is down when the watching begins, and one that goes down meanwhile, end nothing: what comes when the
// link is up again is seen.
func TestATapSeesPacketsAfterItsLinkWasDown(t *testing.T) {
	nstest.Root(t)
	a, b := nstest.New(t, "a"), nstest.New(t, "b")
	nstest.Veth(t, a, "up0", b, "down0")
	packet := tcp(p, r, 41234, 80, bpftest.ACK).Bytes()
	frame := append([]byte{0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd}, packet...)
	a.Down(t, "up0")
	tap, err := watch(a, "up0", whole)
	if err != nil {
		t.Fatal(err)
	}
	defer tap.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range 2 {
		a.Up(t, "up0")
		a.Frames(t, "up0").Send(t, frame)
		if got, err := tap.Next(ctx); err != nil || string(got.Data) != string(packet) {
			t.Fatalf("%d bytes %x, error %v; want %x", got.Length, got.Data, err, packet)
		}
		a.Down(t, "up0")
	}
}

func TestATapEndsWithItsContextAndNamesWhatIsNotThere(t *testing.T) {
	nstest.Root(t)
	a := nstest.New(t, "a")
	tap, err := watch(a, "lo", whole)
	if err != nil {
		t.Fatal(err)
	}
	defer tap.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tap.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was cancelled", err)
	}
	if _, err := watch(a, "nope0", whole); err == nil {
		t.Error("an interface that is not there was opened")
	}
}
