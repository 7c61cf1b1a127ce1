package trunk

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/seal"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// What two agents say of a session after a worker was replaced may not fit: then it ends, and nothing beside it.
func TestAResumeThatDoesNotFitCostsItsSessionAlone(t *testing.T) {
	safety.Test(t, safety.Flow)
	r := newRig(t, 1)
	client, server := r.dial()
	beside, other := r.dial()
	client.Write([]byte("hello"))
	if _, err := io.ReadFull(server, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	r.near.mu.Lock()
	id := r.near.last - 2
	r.near.mu.Unlock()
	m := frame.Resume{Session: id, Kept: frame.Range{From: 9, To: 9}} // nothing came to the near agent yet
	b := m.Append(nil)
	h, err := frame.ParseHeader(b[:frame.HeaderLen])
	if err != nil {
		t.Fatal(err)
	}
	if err := r.near.arrived(r.near.connection(1), h, b[frame.HeaderLen:]); err != nil {
		t.Errorf("it ends the connection: %v", err)
	}
	for name, c := range map[string]*net.TCPConn{"client": client, "server": server} {
		if n, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("the %s got %d bytes, %v: it takes the stream for whole", name, n, err)
		}
		c.Close()
	}
	select {
	case err := <-r.broken:
		t.Log(err)
	case <-time.After(within):
		t.Error("nobody is told why")
	}
	beside.Write([]byte("hello"))
	beside.CloseWrite()
	if n, _, err := receive(other); n != 5 || err != nil {
		t.Errorf("beside it: %d bytes, %v", n, err)
	}
	other.Close()
	receive(beside)
	beside.Close()
	r.isEmpty(2)
}

// notes are what is kept of the other agent's incarnations.
type notes struct{ met []uint64 }

func (*notes) Hold(Kept, *net.TCPConn) error { return nil }
func (*notes) Note(Kept)                     {}
func (*notes) Release(uint64)                {}
func (n *notes) Met(incarnation uint64)      { n.met = append(n.met, incarnation) }

// A worker that dies while a new one of the other agent tells which sessions it has leaves the wait to the next.
func TestAnotherWorkerIsMetOnceItHasToldAll(t *testing.T) {
	n := &notes{}
	r := newRig(t, 0, func(c *Config) {
		if c.Dials {
			c.Keep = n
		}
	})
	up(r.near, r.secret, 7)
	r.near.mu.Lock()
	defer r.near.mu.Unlock()
	if len(n.met) != 1 || n.met[0] != 1 {
		t.Errorf("before it has told: %v are met", n.met)
	}
	if r.near.allResumed(); len(n.met) != 2 || n.met[1] != 7 {
		t.Errorf("after it has told: %v are met", n.met)
	}
}

// An agent that begins anew as a whole may have lower numbers than a worker that has followed a dead one: under another secret
// each counts again.
func TestNumbersOfConnectionsCountUnderTheirSecret(t *testing.T) {
	r := newRig(t, 0)
	used := func(number uint64, secret seal.Secret) error {
		a, b := pair(t)
		defer a.Close()
		defer b.Close()
		c := newConnection(only(r.near), a, number, secret)
		err := r.near.add(c, secret)
		r.near.remove(c)
		return err
	}
	if err := used(1<<40, r.secret); err != nil {
		t.Fatal(err)
	}
	if err := used(7, r.secret); !errors.Is(err, ErrStale) {
		t.Errorf("one that is far behind, of the same secret: %v", err)
	}
	other := seal.Secret{1}
	up(r.near, other, 2)
	if err := used(7, other); err != nil {
		t.Errorf("of another secret: %v", err)
	}
}
