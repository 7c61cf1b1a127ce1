package boostd

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"net"
	"testing"

	"scaffold.dev/scaffold/internal/boost/agent"
	"scaffold.dev/scaffold/internal/boost/keeper"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// A drawer is a keeper that holds what it is given.
type drawer struct{ held map[string][]byte }

func (d *drawer) Found() (list []keeper.Found) {
	for key, text := range d.held {
		fd, err := keeper.Text(text)
		if err != nil {
			panic(err)
		}
		list = append(list, keeper.Found{Key: key, FDs: []int{fd}})
	}
	return list
}

func (d *drawer) Hold(key string, _ []byte, fds ...int) (err error) {
	d.held[key], err = keeper.ReadText(fds[0])
	return err
}

func privateKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// knows is an agent that was told that another one has this key.
func knows(name string, key ed25519.PublicKey) *ring {
	return &ring{all: []Other{{Peer: agent.Peer{Name: name}, Key: key}}}
}

// meet has one agent call another one, and says what each of them makes of it.
func meet(t *testing.T, server, client *tls.Config) (called, calls error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	over := make(chan error)
	go func() {
		c := tls.Server(a, server)
		err := c.Handshake()
		if err == nil {
			_, err = c.Write([]byte{1})
		}
		a.Close()
		over <- err
	}()
	c := tls.Client(b, client)
	if calls = c.Handshake(); calls == nil {
		_, calls = c.Read(make([]byte, 1)) // who calls has its certificate judged after its own handshake
	}
	b.Close()
	return <-over, calls
}

// An agent that has another key is found by those that were told of it, and by those that were not yet: at its door by what they
// say they know it by, and where it calls by the second try at the latest. Those that were told do not take the key of before.
func TestAnAgentWithAnotherKeyIsKnownByBoth(t *testing.T) {
	safety.Test(t, safety.Door)
	keep := &drawer{map[string][]byte{}}
	before, now, other := privateKey(t), privateKey(t), privateKey(t)
	own, err := newShown(before, keep)
	if err == nil {
		err = own.Take(now)
	}
	if err != nil {
		t.Fatal(err)
	}
	others, err := newShown(other, &drawer{map[string][]byte{}})
	if err != nil {
		t.Fatal(err)
	}
	mine := knows("other", others.Key())
	stale, told := knows("own", before.Public().(ed25519.PublicKey)), knows("own", own.Key())
	for name, c := range map[string]struct {
		ring  *ring
		fails [2]bool // the first try, and the second
	}{"not told yet": {stale, [2]bool{true, false}}, "told": {told, [2]bool{false, true}}} {
		if called, calls := meet(t, mine.server(own), c.ring.client(others, "own", 0)); called != nil || calls != nil {
			t.Errorf("%s: it is called: %v, %v", name, called, calls)
		}
		for failed, want := range c.fails {
			if called, calls := meet(t, c.ring.server(others), mine.client(own, "other", failed)); (called != nil) != want || (calls != nil) != want {
				t.Errorf("%s: it calls after %d in vain: %v, %v", name, failed, called, calls)
			}
		}
	}
	// A worker after this one knows both, and takes a key that came while none was there.
	third := privateKey(t)
	next, err := newShown(now, keep)
	if err != nil || !next.before.key.Equal(before) {
		t.Fatalf("the worker after it has %+v, %v", next, err)
	}
	if next, err = newShown(third, keep); err != nil || !next.before.key.Equal(now) || !next.Key().Equal(third.Public()) {
		t.Fatalf("the worker after a rotation has %+v, %v", next, err)
	}
	if _, calls := meet(t, mine.server(next), stale.client(others, "own", 0)); calls == nil {
		t.Error("a key of two before is shown")
	}
	if c := next.known(serverName(third.Public().(ed25519.PublicKey))); c != &next.now.Certificate {
		t.Error("another certificate than that of the key that is known")
	}
	if c := next.known(""); c != &next.now.Certificate { // an agent of before says nothing
		t.Error("who does not say what it knows is shown the key of before")
	}
}

// A foreign key is that of none of the agents, whatever its owner says he knows.
func TestAForeignKeyIsOfNoAgent(t *testing.T) {
	safety.Test(t, safety.Door)
	own, err := newShown(privateKey(t), &drawer{map[string][]byte{}})
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := newShown(privateKey(t), &drawer{map[string][]byte{}})
	if err != nil {
		t.Fatal(err)
	}
	mine, theirs := knows("other", privateKey(t).Public().(ed25519.PublicKey)), knows("own", own.Key())
	if called, _ := meet(t, mine.server(own), theirs.client(foreign, "own", 0)); called == nil {
		t.Error("a foreign key is let in")
	}
	if _, calls := meet(t, theirs.server(foreign), mine.client(own, "other", 0)); calls == nil {
		t.Error("an agent with a foreign key is called")
	}
	if _, calls := meet(t, theirs.server(foreign), mine.client(own, "nobody", 0)); calls == nil {
		t.Error("an agent that nobody has told of is called")
	}
}
