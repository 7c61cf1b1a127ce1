package agent

import (
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/boost/keeper"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// A shelf keeps what an agent has it hold, as a keeper does.
type shelf struct {
	mu  sync.Mutex
	all map[string]keeper.Found
}

func (s *shelf) Hold(key string, value []byte, fds ...int) error {
	f := keeper.Found{Key: key, Value: value}
	for _, fd := range fds {
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return err
		}
		f.FDs = append(f.FDs, own)
	}
	s.Release(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[key] = f
	return nil
}

func (s *shelf) Note(key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.all[key]; ok {
		f.Value = value
		s.all[key] = f
	}
	return nil
}

func (s *shelf) Release(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fd := range s.all[key].FDs {
		unix.Close(fd)
	}
	delete(s.all, key)
	return nil
}

// found is what the next process gets: descriptors of its own.
func (s *shelf) found(t *testing.T) (all []keeper.Found) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.all)) {
		f := s.all[key]
		f.FDs = slices.Clone(f.FDs)
		for i, fd := range f.FDs {
			own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.FDs[i] = own
		}
		all = append(all, f)
	}
	return all
}

// A worker that fails before it has come to work, be it because the kernel takes no lanes, leaves what the keeper holds: it resets
// no connection, and the keeper has them all for the next one.
func TestAWorkerThatDoesNotComeToWorkLeavesConnections(t *testing.T) {
	safety.Test(t, safety.Flow)
	held := &shelf{all: map[string]keeper.Found{}}
	n := newNetwork(t)
	x, y := n.agent("x", func(c *Config) { c.Keep = held }), n.agent("y", nil)
	lane := Lane{Number: 5, Client: clients, Server: servers, Port: 80, Near: []string{"x"}, Far: []string{"y"}}
	y.tell(t, []Peer{x.at}, lane)
	x.tell(t, []Peer{y.at}, lane)
	x.connected(t, "y")
	syn, what := x.offer(t, 5)
	if what != "accepted" {
		t.Fatalf("the connection was %s", what)
	}
	client := <-syn.client
	there, err := y.ends.server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close() // without a use at the end the collector of garbage closes it, and the client has the end of its stream
	client.SetDeadline(time.Now().Add(within))
	echo := func(when string) {
		t.Helper()
		if _, err := there.Write([]byte(when)); err != nil {
			t.Fatalf("%s: the server's end: %v", when, err)
		}
		b := make([]byte, len(when))
		if _, err := io.ReadFull(client, b); err != nil || string(b) != when {
			t.Fatalf("%s: the client has %q, %v", when, b, err)
		}
	}
	echo("before")
	found := held.found(t)
	if Sessions(found) != 1 {
		t.Fatalf("%d connections are held", Sessions(found))
	}
	x.Leave()
	// What x had goes on in a process that fails: here the former one is only said to have ended, and its trunk still runs. So
	// there is another agent for the next one, which it does not reach.
	next := n.agent("x", func(c *Config) { c.Keep, c.Found = held, found })
	next.ends.mu.Lock()
	next.ends.full = errors.New("no room for lanes")
	next.ends.mu.Unlock()
	if err := next.Tell([]Peer{{Name: "y", Door: next.at.Door}}, []Lane{lane}); err == nil {
		t.Fatal("it says nothing")
	}
	next.Leave()
	if got := Sessions(held.found(t)); got != 1 {
		t.Errorf("%d connections are held behind it", got)
	}
	client.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // a reset by this process is there at once
	var late net.Error
	if _, err := client.Read(make([]byte, 1)); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("the client: %v", err)
	}
}
