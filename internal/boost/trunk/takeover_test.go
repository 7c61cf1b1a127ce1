package trunk

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// A spared is a session between a client, whose agent is to be lost, and a server; and a trunk from the server's agent to
// another one, which takes over whatever it is asked for.
type spared struct {
	*rig        // near is the agent that is lost, far the server's
	spare  *rig // near is the other agent, far the server's once more
	asked  chan frame.Takeover
	answer func(frame.Takeover) (Attached, uint64, error)
	client *net.TCPConn
	server *net.TCPConn
}

// someone is what two ends of a connection say of themselves.
var someone = frame.Options{Sequence: 1000, MSS: 1460}

func newSpared(t *testing.T) *spared {
	s := &spared{asked: make(chan frame.Takeover, 10)}
	s.spare = newRig(t, 2, func(c *Config) {
		if !c.Dials {
			return
		}
		c.Restore = func(_ context.Context, m frame.Takeover) (Attached, uint64, error) {
			s.asked <- m
			return s.answer(m)
		}
	})
	s.rig = newRig(t, 2)
	for _, r := range []*rig{s.spare, s.rig} {
		r.near.Speaks(2)
		r.far.Speaks(2)
	}
	s.client, s.server = s.dialAs(someone)
	return s
}

// dialAs is dial for a client and an agent that say something of themselves.
func (r *rig) dialAs(o frame.Options) (client, server *net.TCPConn) {
	r.t.Helper()
	s, err := r.near.Open(r.t.(*testing.T).Context(), frame.Open{Lane: 5, Client: ends.Client, Server: ends.Server})
	if err != nil {
		r.t.Fatal(err)
	}
	accepted, err := r.server.Accept()
	if err != nil {
		r.t.Fatal(err)
	}
	client, own := pair(r.t)
	s.Attach(Attached{Conn: own, Host: o, Own: o})
	return client, accepted.(*net.TCPConn)
}

func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// movable waits until the server's agent could move the session.
func (s *spared) movable() (m *Session) {
	s.t.Helper()
	until(s.t, func() error {
		all := s.far.Movable()
		if len(all) != 1 {
			return errors.New("no session can be moved")
		}
		m = all[0]
		return nil
	})
	return m
}

// The client has got a part of its download when its agent is lost: another one has the connection, which stands where the
// client says, and the rest comes by way of that. What the client says meanwhile arrives, too.
func TestADownloadGoesOnOverAnotherAgent(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for name, keepsGoing := range map[string]bool{"the server goes on": true, "the server has sent all, and its end": false} {
		t.Run(name, func(t *testing.T) {
			s := newSpared(t)
			file := noise(6 << 20)
			if _, err := s.client.Write([]byte("give me a file")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(s.server, make([]byte, 14)); err != nil {
				t.Fatal(err)
			}
			first := file
			if keepsGoing {
				first = file[:2<<20]
			}
			sent := make(chan error, 1)
			go func() {
				_, err := s.server.Write(first)
				if err == nil && keepsGoing {
					_, err = s.server.Write(file[len(first):])
				}
				sent <- errors.Join(err, s.server.CloseWrite())
			}()
			got := make([]byte, 1_000_003)
			if _, err := io.ReadFull(s.client, got); err != nil {
				t.Fatal(err)
			}
			m := s.movable()
			for number := range s.live { // the agent is lost
				s.cut(number)
			}
			client, own := pair(t)
			until(t, func() error { return is("connections to the lost agent", s.far.Connections(), 0) })
			s.answer = func(m frame.Takeover) (Attached, uint64, error) { // the client's kernel has more than its program has read
				more := make([]byte, max(m.Kept.From, uint64(len(got)))-uint64(len(got)))
				_, err := io.ReadFull(s.client, more)
				got = append(got, more...)
				return Attached{Conn: own, Host: someone, Own: someone}, uint64(len(got)), err
			}
			if err := s.spare.far.TakeOver(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if ask := <-s.asked; ask.Arrived != 14 || !ask.Client || ask.Host != someone || ask.Own != someone || ask.Lane != 5 || ask.Open.Client != ends.Client {
				t.Errorf("asked was %+v", ask)
			}
			client.SetDeadline(time.Now().Add(within))
			rest, err := io.ReadAll(client)
			if err != nil || string(rest) != string(file[len(got):]) {
				t.Errorf("%d bytes of %d came after that, %v", len(rest), len(file)-len(got), err)
			}
			if _, err := client.Write([]byte("thanks")); err != nil {
				t.Error(err)
			}
			client.CloseWrite()
			if b, err := io.ReadAll(s.server); err != nil || string(b) != "thanks" {
				t.Errorf("the server heard %q, %v", b, err)
			}
			if err := <-sent; err != nil {
				t.Error(err)
			}
			s.spare.isEmpty(1)
			if n := s.far.Sessions(); n != 0 {
				t.Errorf("the lost agent's trunk has %d sessions left", n)
			}
		})
	}
}

// The lost agent was only away: the session that has moved is none of its own any more.
func TestTheAgentThatComesBackHasNoSession(t *testing.T) {
	s := newSpared(t)
	m := s.movable()
	for number := range s.live {
		s.cut(number)
	}
	client, own := pair(t)
	s.answer = func(frame.Takeover) (Attached, uint64, error) { return Attached{Conn: own}, 0, nil }
	if err := s.spare.far.TakeOver(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	s.connect()
	until(t, func() error {
		if n := s.near.Sessions(); n != 0 {
			return errors.New("it has a session")
		}
		return nil
	})
	if _, err := s.server.Write([]byte("to the client")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 13)
	client.SetDeadline(time.Now().Add(within))
	if _, err := io.ReadFull(client, b); err != nil || string(b) != "to the client" {
		t.Errorf("%q, %v", b, err)
	}
}

// Where the other agent does not have the connection nothing has changed, and the first one may go on.
func TestARefusedTakeoverChangesNothing(t *testing.T) {
	s := newSpared(t)
	m := s.movable()
	s.answer = func(frame.Takeover) (Attached, uint64, error) { return Attached{}, 0, &Refused{frame.Silence} }
	var refused *Refused
	if err := s.spare.far.TakeOver(t.Context(), m); !errors.As(err, &refused) || refused.Reason != frame.Silence {
		t.Fatalf("%v", err)
	}
	go s.server.Write([]byte("to the client"))
	b := make([]byte, 13)
	if _, err := io.ReadFull(s.client, b); err != nil || string(b) != "to the client" {
		t.Errorf("%q, %v", b, err)
	}
	s.movable()
}

// What the end host wants is none of what there is, or the session has gone on: nobody gets a stream with a hole.
func TestATakeoverThatDoesNotFitMovesNothing(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for name, wants := range map[string]func(m frame.Takeover) uint64{
		"more than there is": func(m frame.Takeover) uint64 { return m.Kept.To + 1 },
		"what is forgotten":  func(m frame.Takeover) uint64 { return m.Kept.From - 1 },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSpared(t)
			go s.server.Write(make([]byte, 300<<10))
			if _, err := io.ReadFull(s.client, make([]byte, 300<<10)); err != nil {
				t.Fatal(err)
			}
			until(t, func() error {
				s.far.mu.Lock()
				defer s.far.mu.Unlock()
				for id := range s.far.sessions {
					if kept, _ := s.far.sender.Kept(id); kept.From == 300<<10 {
						return nil
					}
				}
				return errors.New("the agent keeps what was acknowledged")
			})
			m := s.movable()
			client, own := pair(t)
			s.answer = func(m frame.Takeover) (Attached, uint64, error) { return Attached{Conn: own}, wants(m), nil }
			if err := s.spare.far.TakeOver(t.Context(), m); err == nil {
				t.Fatal("it was taken")
			}
			client.SetDeadline(time.Now().Add(within))
			if n, err := client.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, io.EOF) {
				t.Errorf("the end host got %d bytes, %v; want a reset", n, err)
			}
			until(t, func() error { return is("sessions of who was asked", s.spare.near.Sessions(), 0) })
		})
	}
}

// An agent of before is asked nothing: it would take the frame for none.
func TestAnAgentOfBeforeIsNotAskedToTakeOver(t *testing.T) {
	s := newSpared(t)
	s.spare.far.Speaks(1)
	if s.spare.far.TakesOver() {
		t.Error("it could be asked")
	}
	if err := s.spare.far.TakeOver(t.Context(), s.movable()); err == nil || len(s.asked) > 0 {
		t.Errorf("%v, asked %d times", err, len(s.asked))
	}
}

// An agent that was cut off resets the end host if that still speaks to it, and else says nothing: another one may have the
// connection.
func TestWhoIsNotHeardSaysNothing(t *testing.T) {
	safety.Test(t, safety.Bytes)
	s := newSpared(t)
	s.near.mu.Lock()
	for _, x := range s.near.sessions {
		x.lose()
	}
	s.near.mu.Unlock()
	s.client.SetDeadline(time.Now().Add(within))
	if _, err := s.client.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the client, who answers, got %v; want a reset", err)
	}
}

// asks has the server's agent ask the other one, whose answer waits until goOn.
func (s *spared) asks(answer Attached) (id uint64, goOn chan struct{}, done chan error) {
	s.t.Helper()
	goOn, done = make(chan struct{}), make(chan error, 1)
	s.answer = func(m frame.Takeover) (Attached, uint64, error) {
		<-goOn
		return answer, m.Kept.From, nil
	}
	m := s.movable()
	go func() { done <- s.spare.far.TakeOver(s.t.(*testing.T).Context(), m) }()
	ask := <-s.asked
	return ask.Session, goOn, done
}

// There is no memory any more when the answer comes: it costs this session, not the connections that say it.
func TestAnAnswerWithoutRoomCostsNoConnection(t *testing.T) {
	s := newSpared(t)
	_, own := pair(t)
	id, goOn, done := s.asks(Attached{Conn: own})
	s.spare.far.mu.Lock()
	s.spare.far.sender.Close(id)
	for other := id + 2; s.spare.far.sender.Open(other, 0, 0) == nil; other += 2 {
	}
	s.spare.far.mu.Unlock()
	close(goOn)
	var refused *Refused
	if err := <-done; !errors.As(err, &refused) || refused.Reason != frame.NoRoom {
		t.Errorf("%v; want a refusal for want of room", err)
	}
	until(t, func() error { return is("sessions of who was asked", s.spare.near.Sessions(), 0) })
	if n := s.spare.far.Sessions(); n != 0 {
		t.Errorf("who asked keeps %d sessions", n)
	}
	s.spare.nobodyIsBlamed()
	if n := s.spare.far.Connections(); n != 2 {
		t.Errorf("%d connections are left of 2", n)
	}
	s.movable()
}

// A RETIRE takes its TAKEOVER back, also where it comes first, by another connection.
func TestATakeoverThatWasTakenBackBeforeItCameIsNone(t *testing.T) {
	s := newSpared(t)
	m := frame.Takeover{Open: ends}
	m.Session = 1001
	s.spare.hears(frame.Retire(m.Session).Append(nil))
	s.spare.hears(m.Append(nil))
	if n := s.spare.near.Sessions(); n != 0 || len(s.asked) > 0 {
		t.Errorf("%d sessions, and %d end hosts are asked", n, len(s.asked))
	}
	m.Session = 999 // one that RETIRE has overtaken is none of those that it is not about
	s.answer = func(frame.Takeover) (Attached, uint64, error) { return Attached{}, 0, &Refused{frame.Silence} }
	s.spare.hears(m.Append(nil))
	select {
	case ask := <-s.asked:
		if ask.Session != 999 {
			t.Errorf("asked is %#x", ask.Session)
		}
	case <-time.After(within):
		t.Error("the one before it is not asked for")
	}
}

// hears has the near agent take a frame of the far one.
func (r *rig) hears(b []byte) {
	r.t.Helper()
	h, err := frame.ParseHeader(b)
	if err == nil {
		err = r.near.arrived(r.near.connection(1), h, b[frame.HeaderLen:])
	}
	if err != nil {
		r.t.Errorf("the near agent ends a connection: %v", err)
	}
}

// So many end hosts are asked at a time, and no more: what one agent has another one send, and remember, has a bound. Once
// some have answered there is room for others.
func TestTakeoversAtATimeHaveABound(t *testing.T) {
	goOn, asked := make(chan struct{}), make(chan struct{}, mostAsked+10)
	r := newRig(t, 1, func(c *Config) {
		c.Restore = func(ctx context.Context, _ frame.Takeover) (Attached, uint64, error) {
			asked <- struct{}{}
			select {
			case <-goOn:
			case <-ctx.Done():
			}
			return Attached{}, 0, &Refused{frame.Silence}
		}
	})
	m := frame.Takeover{Open: ends}
	asks := func() frame.Refusal {
		m.Session += 2
		r.hears(m.Append(nil))
		r.near.mu.Lock()
		defer r.near.mu.Unlock()
		return r.near.refused.of(m.Session)
	}
	m.Session = 1
	for range mostAsked {
		if why := asks(); why != 0 {
			t.Fatalf("%#x is refused: %v", m.Session, why)
		}
	}
	if why := asks(); why != frame.NoRoom {
		t.Errorf("one too many is refused by %d", why)
	}
	goOn <- struct{}{}
	until(t, func() error { return is("sessions", r.near.Sessions(), mostAsked-1) })
	if why := asks(); why != 0 {
		t.Errorf("with room for one it is refused: %v", why)
	}
	close(goOn)
	until(t, func() error { return is("sessions", r.near.Sessions(), 0) })
	if n := len(asked); n != mostAsked+1 {
		t.Errorf("%d end hosts were asked, not %d", n, mostAsked+1)
	}
}

// An agent that has no memory for another session asks no end host for one.
func TestWithoutRoomNoEndHostIsAsked(t *testing.T) {
	s := newSpared(t)
	s.spare.near.mu.Lock()
	for id := uint64(2); s.spare.near.sender.Open(id, 0, 0) == nil; id += 2 {
	}
	s.spare.near.mu.Unlock()
	s.answer = func(frame.Takeover) (Attached, uint64, error) { return Attached{}, 0, &Refused{frame.Silence} }
	var refused *Refused
	if err := s.spare.far.TakeOver(t.Context(), s.movable()); !errors.As(err, &refused) || refused.Reason != frame.NoRoom || len(s.asked) > 0 {
		t.Errorf("%v, and %d end hosts were asked", err, len(s.asked))
	}
}
