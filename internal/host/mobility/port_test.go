package mobility

import (
	"testing"

	"scaffold.dev/scaffold/sid"
)

// A client's kernel gives the port of a connection that has ended to the next one. What moves then is the
// connection that is there, and not the one that this host moved before.
func TestAPortThatComesBackIsAnotherConnection(t *testing.T) {
	n := newFakeNet(t)
	a, b, c := n.host(placeA), n.host(placeB), n.host(placeC)
	n.connect(a, b, 1000, sid.TCP)
	n.moveTo(a, placeA+1)
	n.run()
	ct, st := n.connect(a, c, 1000, sid.TCP)
	n.moveTo(a, placeA+2)
	n.run()
	n.agree(a, c, ct, st)
	if a.counters["replaced"] == 0 {
		t.Error("the connection of before is still held")
	}
}

// Nor does a move of the old connection's server touch the one that has its port now.
func TestAnOldServerMovesWithoutTheNewConnection(t *testing.T) {
	n := newFakeNet(t)
	a, b, c := n.host(placeA), n.host(placeB), n.host(placeC)
	n.connect(a, b, 1000, sid.TCP)
	n.moveTo(a, placeA+1)
	n.run()
	ct, st := n.connect(a, c, 1000, sid.TCP)
	n.moveTo(b, placeB+1)
	n.run()
	n.agree(a, c, ct, st)
}
