package trunk

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/seal"
	"scaffold.dev/scaffold/internal/core/stripe"
	"scaffold.dev/scaffold/internal/core/tune"
	"scaffold.dev/scaffold/internal/tests/safety"
)

var second = Pair{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}

// overTwo is a rig whose near trunk has a second path, with a limit of its own, and a connection there.
func overTwo(t *testing.T, limit float64) (*rig, *Path, *connection) {
	t.Helper()
	r := newRig(t, 2, func(c *Config) {
		if c.Dials {
			c.Strategy, c.Shape = nil, tune.Settings{Share: tune.Raw}
		}
	})
	r.near.Use([]Way{{}, {second, limit}})
	p := r.near.Path(second)
	if _, err := p.Up(seal.Secret{7}, 1, 2); err != nil {
		t.Fatal(err)
	}
	a, b := pair(t)
	t.Cleanup(func() { b.Close() })
	r.others = map[connectionID]*net.TCPConn{1000: b}
	c := newConnection(p, a, 1000, seal.Secret{7})
	if err := r.near.add(c, seal.Secret{7}); err != nil {
		t.Fatal(err)
	}
	r.serving.Go(func() { c.serve() })
	return r, p, c
}

// Each path has its own limit, its own decisions, and as many connections as bring something there.
func TestEachPathIsTunedByItself(t *testing.T) {
	r, p, c := overTwo(t, 3<<20)
	decides(r.near, tune.Decision{Connections: 1, Beside: true, Cap: 1 << 20, Control: "cubic"})
	if got := pacing(t, c.conn); got != 3<<20 {
		t.Errorf("on the path with a limit of %d a connection may send %d bytes a second", 3<<20, got)
	}
	if got := pacing(t, r.live[1][0]); got != 1<<20 {
		t.Errorf("on the other one, beside others, it may send %d", got)
	}
	if got := carries(r.near); got != "1 " || c.rests {
		t.Errorf("beside others on one path %s carry there, and on the other one its connection rests: %v", got, c.rests)
	}
	r.near.mu.Lock()
	p.decide(tune.Decision{Connections: 1, Cap: 2 << 20, Control: c.control})
	r.near.mu.Unlock()
	if got := pacing(t, r.live[1][0]); got != 1<<20 {
		t.Errorf("a decision about one path is one of the other: %d", got)
	}
	if s := r.near.Status(); len(s.Paths) != 2 || s.Paths[0].Connections != 2 || s.Paths[1].Connections != 1 || s.Paths[1].Pair != second || s.Connections != 3 {
		t.Errorf("%+v", s)
	}
	p.Retire(1)
	if s := r.near.Status(); s.Connections != 3 {
		t.Errorf("connections of another path retire: %+v", s)
	}
}

// Over several paths the one that is slow is to hold up nothing.
func TestSeveralPathsHaveTheirStrategy(t *testing.T) {
	for paths, want := range map[int]string{0: "pull", 1: "pull", 2: "ecf", 3: "ecf"} {
		named, err := stripe.StrategyNamed(want)
		if err != nil {
			t.Fatal(err)
		}
		if got := strategyFor(paths); fmt.Sprintf("%T", got) != fmt.Sprintf("%T", named) {
			t.Errorf("%d paths: %T, want %s", paths, got, want)
		}
	}
}

// A path that ends, or whose control connection does, takes no connection of another one with it. What was said by a worker
// that another one has followed is not heard by another path, and its connections end on all of them.
func TestPathsEndByThemselves(t *testing.T) {
	var told []Change
	r, p, c := overTwo(t, 0)
	r.near.Changed = func(c Change) { told = append(told, c) } // this goroutine calls what changes paths
	why := errors.New("silent")
	over, err := p.Up(seal.Secret{8}, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() error {
		if r.near.connection(c.id) != nil {
			return errors.New("a connection of a former secret goes on")
		}
		return nil
	})
	over(why)
	if len(told) != 1 || told[0].Up || told[0].Pair != second || !errors.Is(told[0].Why, why) {
		t.Errorf("told: %v", told)
	}
	if s := r.near.Status(); s.Connections != 2 || s.Paths[1].Why != "silent" {
		t.Errorf("%+v", s)
	}
	if _, err := p.Up(seal.Secret{9}, 5, 2); err != nil { // its next worker comes by the other path
		t.Fatal(err)
	}
	until(t, func() error { return is("connections", r.near.Connections(), 0) })
	if s := r.near.Status(); s.Paths[0].Why != errFollowed.Error() {
		t.Errorf("%+v", s)
	}
	if _, err := only(r.near).Up(seal.Secret{1}, 1, 2); !errors.Is(err, ErrFormer) {
		t.Errorf("the former worker by the other path: %v", err)
	}
	if _, err := only(r.near).Up(seal.Secret{1}, 5, 2); err != nil {
		t.Errorf("the next one by the other path: %v", err)
	}
	r.near.Use([]Way{{}})
	if r.near.Path(second) != nil || p.Context().Err() == nil {
		t.Error("a path that is not named any more goes on")
	}
	if _, err := p.Up(seal.Secret{9}, 5, 2); !errors.Is(err, ErrClosed) {
		t.Errorf("it has a control connection: %v", err)
	}
}

// What was measured on a connection that rests is forgotten, as the kernel forgets it of one that carries something.
func TestWhatAConnectionThatRestsHasMeasuredIsForgotten(t *testing.T) {
	r := newRig(t, 2)
	p, now := only(r.near), time.Now()
	r.near.mu.Lock()
	defer r.near.mu.Unlock()
	one, two := r.near.conns[1], r.near.conns[2]
	one.shortest, two.shortest = 50*time.Millisecond, 10*time.Millisecond
	two.rests, two.heard = true, now.Add(-time.Minute)
	if got := p.shortest(now); got != 10*time.Millisecond || two.current(now, lately) {
		t.Errorf("a minute ago: %v, and its round trip is current: %v", got, two.current(now, lately))
	}
	two.heard = now.Add(-remembers)
	if got := p.shortest(now); got != 50*time.Millisecond {
		t.Errorf("longer ago than the kernel knows: %v", got)
	}
	two.rests = false
	if got := p.shortest(now); got != 10*time.Millisecond || !two.current(now, lately) {
		t.Errorf("one that carries: %v", got)
	}
}

// What a worker of the other agent has said is not taken once another one has followed it, or its connection has ended: it may be
// on its way from the socket to the trunk, and the next worker has nothing of what the former one had received.
func TestNoWordOfAFormerWorkerCounts(t *testing.T) {
	safety.Test(t, safety.Flow)
	for what, ends := range map[string]func(*Trunk, *connection) error{
		"another worker has followed": func(t *Trunk, _ *connection) error {
			_, err := only(t).Up(seal.Secret{7}, 2, 2)
			return err
		},
		"its path has ended":       func(t *Trunk, _ *connection) error { t.Use(nil); return nil },
		"the connection was taken": func(t *Trunk, c *connection) error { t.remove(c); return nil },
	} {
		r := newRig(t, 0)
		a, b := pair(t)
		c := newConnection(only(r.near), a, 1, r.secret) // nobody reads it, so it is there until it is removed
		if err := r.near.add(c, r.secret); err != nil {
			t.Fatal(err)
		}
		h := frame.Chunk(3, 0, 4) // of no session, which is a fault
		if err := r.near.arrived(c, h, []byte("data")); !errors.As(err, new(*stripe.Violation)) {
			t.Errorf("before %s its word is not heard: %v", what, err)
		}
		if err := ends(r.near, c); err != nil {
			t.Fatal(err)
		}
		if err := r.near.arrived(c, h, []byte("data")); !errors.Is(err, ErrClosed) {
			t.Errorf("%s, and a frame says %v, want %v", what, err, ErrClosed)
		}
		b.Close()
	}
}

// A former worker's control connection that comes late, by whatever path, takes neither the path from the next one nor what the
// two agents have agreed on. Where the next one has no path any more it may be a worker whose machine's clock was set back.
func TestAFormerWorkerComesToNothing(t *testing.T) {
	r := newRig(t, 1)
	p := only(r.near)
	down, err := p.Up(r.secret, 5, 2)
	if err != nil {
		t.Fatal(err)
	}
	r.near.Use([]Way{{}, {second, 0}})
	for _, by := range []*Path{p, r.near.Path(second)} {
		if _, err := by.Up(seal.Secret{9}, 4, 1); !errors.Is(err, ErrFormer) {
			t.Errorf("by path %v: %v, want %v", by.Pair, err, ErrFormer)
		}
	}
	r.near.mu.Lock()
	if r.near.version != 2 || p.secret != r.secret || !p.up || r.near.peer != 5 {
		t.Errorf("version %d, the path is up %v with the secret of before %v, the worker is %d", r.near.version, p.up, p.secret == r.secret, r.near.peer)
	}
	r.near.mu.Unlock()
	down(errors.New("silent"))
	if _, err := p.Up(seal.Secret{9}, 4, 1); err != nil {
		t.Errorf("nobody else is there: %v", err)
	}
	r.near.mu.Lock()
	defer r.near.mu.Unlock()
	if r.near.version != 1 {
		t.Errorf("version %d, want that of the worker which is there", r.near.version)
	}
}
