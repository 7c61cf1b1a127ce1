package kick

import (
	"net/netip"
	"testing"
)

// Of more connections than one run takes, each is found or known to be missing, and looks as it does alone.
func TestManyAreFoundByName(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	exchange(t, c.mover, c.other, "hello")
	k := openIn(t, w.other)
	want := one(t, k, c.other)
	set := SetOf(tupleOf(c.other))
	for port := range uint16(2 * mostLooks) {
		gone := tupleOf(c.other)
		gone.Peer = netip.AddrPortFrom(netip.MustParseAddr("fd5e::3"), port+1) // the listener would take it
		set[gone] = struct{}{}
	}
	var found []Socket
	rest, err := k.eachMany(set, func(s *Socket) error { found = append(found, *s); return nil })
	if err != nil || len(found) != 1 || len(rest) != 2*mostLooks {
		t.Fatalf("found %d, missing %d, %v; want 1 and %d", len(found), len(rest), err, 2*mostLooks)
	}
	want.At, want.Due = found[0].At, found[0].Due // the clock goes on
	if found[0] != want {
		t.Errorf("among many:\n%+v\nalone:\n%+v", found[0], want)
	}
	if r, err := k.Kick(set); err != nil || r.Found != 1 {
		t.Errorf("kick: %+v, %v; want one found", r, err)
	}
}
