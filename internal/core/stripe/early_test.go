package stripe

import (
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// earlySender has an early session, 2, with a chunk, and one that is answered, 4, with another; two connections.
func earlySender(t *testing.T, strategy string) *Sender {
	t.Helper()
	how, err := StrategyNamed(strategy)
	if err != nil {
		t.Fatal(err)
	}
	s := NewSender(64*MinWindow, how)
	for session, credit := range map[uint64]uint64{2: 0, 4: MinWindow} {
		if err := s.Open(session, 0, credit); err != nil {
			t.Fatal(err)
		}
	}
	s.Early(2)
	if got := s.Room(2); got != Early {
		t.Fatalf("an early session has room for %d bytes, not %d", got, Early)
	}
	s.Push(2, Chunk{Length: 1000, Slot: 1})
	s.Connect(1, Measure{RTT: time.Millisecond})
	s.Connect(2, Measure{RTT: time.Second})
	return s
}

// all is what a connection sends now, by sessions.
func all(s *Sender, c Conn) map[uint64]int {
	sent := map[uint64]int{}
	for range 100 {
		f, ok := s.Next(time.Unix(1, 0), c)
		if !ok {
			break
		}
		if f.Type == frame.TypeData {
			sent[f.Session]++
		}
	}
	return sent
}

// Early bytes go behind their OPEN, on the connection that carries it: on another one they would be those of a session that
// the peer does not know, which ends the connection.
func TestEarlyBytesGoWhereTheirOPENWent(t *testing.T) {
	for _, strategy := range Strategies {
		t.Run(strategy, func(t *testing.T) {
			s := earlySender(t, strategy)
			for c := Conn(1); c <= 2; c++ {
				if sent := all(s, c); len(sent) > 0 {
					t.Fatalf("connection %d sends %v, though nobody has said OPEN", c, sent)
				}
			}
			s.Follow(2, 2) // the slow one: no strategy has another opinion
			s.Push(4, Chunk{Length: 1000, Slot: 2})
			if sent := all(s, 1); sent[2] != 0 {
				t.Fatalf("connection 1 sends %v, though OPEN went by connection 2", sent)
			}
			if sent := all(s, 2); sent[2] != 1 {
				t.Fatalf("connection 2 sends %v, not the early chunk behind its OPEN", sent)
			}
			s.Disconnect(2)
			if sent := all(s, 1); sent[2] != 0 {
				t.Fatalf("connection 1 sends %v again before it has said OPEN again", sent)
			}
			s.Follow(2, 1)
			if sent := all(s, 1); sent[2] != 1 {
				t.Fatalf("connection 1 sends %v, not the early chunk behind its OPEN", sent)
			}
		})
	}
}

// Others do not wait for an early session whose turn it is.
func TestAnEarlySessionHoldsUpNobody(t *testing.T) {
	s := earlySender(t, "pull")
	s.Follow(2, 2)
	s.Push(4, Chunk{Length: 1000, Slot: 2})
	if sent := all(s, 1); sent[4] != 1 || sent[2] != 0 {
		t.Fatalf("connection 1 sends %v, not what it may", sent)
	}
	if sent := all(s, 2); sent[2] != 1 {
		t.Fatalf("connection 2 sends %v, not the early chunk", sent)
	}
}

// What is early is bounded by what a peer has memory for before it has answered; once it has, all connections carry.
func TestAnAnsweredSessionIsNoEarlyOne(t *testing.T) {
	s := earlySender(t, "pull")
	s.Push(2, Chunk{Offset: 1000, Length: Early - 1000, Slot: 1, At: 1000})
	if room := s.Room(2); room != 0 {
		t.Fatalf("there is room for %d bytes beyond what may be early", room)
	}
	s.Follow(2, 2)
	s.Answered(2)
	if err := s.State(&frame.State{Session: 2, Credit: 2 * Early}); err != nil {
		t.Fatal(err)
	}
	if sent := all(s, 1); sent[2] == 0 {
		t.Fatalf("connection 1 sends %v, nothing of a session that was answered", sent)
	}
	if room := s.Room(2); room == 0 {
		t.Fatal("there is no room for more, though credit has come")
	}
}
