package emu

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// pipe passes packets from each of its two ports to the other.
type pipe struct{}

func (pipe) Process(_ *Router, batch []Packet) {
	for i := range batch {
		batch[i].Port ^= 1
	}
}

func TestRoutersMoveUnderAStream(t *testing.T) {
	nstest.Root(t)
	runtime.GOMAXPROCS(max(5, runtime.GOMAXPROCS(0))) // the shards do not give theirs away
	a, b := nstest.New(t, "a"), nstest.New(t, "b")
	n := New(Options{Shards: 2, Split: true})
	t.Cleanup(func() { n.Close() })
	r := &rig{a: a, b: b, Net: n}
	var nodes []Node
	nodes = append(nodes, r.edge(t, a))
	for i := range 4 {
		nodes = append(nodes, n.Router(fmt.Sprint("r", i), pipe{}))
	}
	nodes = append(nodes, r.edge(t, b))
	for i := range len(nodes) - 1 {
		if _, err := n.Link(nodes[i], nodes[i+1], [2]Params{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	r.address(t)
	done, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		random := rand.New(rand.NewPCG(1, 1))
		for moves := 0; ; moves++ {
			select {
			case <-done:
				t.Logf("%d moves", moves)
				return
			default:
			}
			if err := n.Move(Move{n.routers[random.IntN(4)], random.IntN(2)}); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	stream(t, r, 1<<25)
	close(done)
	<-stopped
	for _, l := range n.links {
		s, err := l.Stats()
		if err != nil {
			t.Fatal(err)
		}
		for _, way := range s {
			if way.Starved > 0 {
				t.Errorf("lost: %+v", way)
			}
		}
	}
}
