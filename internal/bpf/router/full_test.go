package router

import (
	"strings"
	"testing"

	"scaffold.dev/scaffold/sid"
)

// TestAFullTableSaysSo in words, keeps what it has, and takes more once something goes.
func TestAFullTableSaysSo(t *testing.T) {
	r := open(t, Config{Nodes: 4})
	triple := func(i int) sid.Triple { return sid.Triple{Service: service(i), Proto: sid.TCP, Port: 80} }
	for i := range 4 {
		must(t, r.SetTable(triple(i), targets(100)))
	}
	if err := r.SetTable(triple(4), targets(100)); err == nil || !strings.Contains(err.Error(), "the router's table is full") {
		t.Fatalf("a fifth node of four: %v", err)
	}
	u, err := r.Usage()
	must(t, err)
	if u.Nodes != 4 || u.Room != 4 || u.Instances != 4 {
		t.Errorf("%+v", u)
	}
	must(t, r.SetTable(triple(0), targets(7)), r.SetTable(triple(1), nil), r.SetTable(triple(4), targets(100)))
}
