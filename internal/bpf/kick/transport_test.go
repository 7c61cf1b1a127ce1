package kick

import (
	"errors"
	"io"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/wire"
)

// healthy is a connection that could continue.
func healthy() Socket {
	return Socket{
		Tuple: Tuple{netip.MustParseAddrPort("[fd5e::1]:4000"), netip.MustParseAddrPort("[fd5c::1]:80")},
		At:    5 * time.Second, State: Established, Sequenced: true,
		SndUna: 100, SndNxt: 200, RcvNxt: 900, RcvWup: 800, RcvWnd: 1100,
		SndShift: 7, RcvShift: 3, WindowScale: true, SACK: true, Timestamps: true, TSOffset: 10, TSRecent: 77,
		AdvMSS: 1428, MSSClamp: 1440, BytesAcked: 31, BytesReceived: 40,
	}
}

func TestTransportIsTheClientsView(t *testing.T) {
	s := healthy()
	got, err := s.Transport()
	want := wire.Transport{ClientPort: 4000, ServerPort: 80, SACK: true, Timestamps: true, Scales: true,
		ClientScale: 3, ServerScale: 7, MSS: 1440, SndUna: 100, RcvNxt: 900, TSVal: 5010, TSEcr: 77, Sent: 30, Received: 40}
	if got != want || err != nil {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
	if s.Window() != 1000>>3 {
		t.Errorf("window %d, want %d", s.Window(), 1000>>3)
	}
	s.WindowScale, s.Timestamps, s.RcvShift = false, false, 0
	got, err = s.Transport()
	if err != nil || got.ClientScale != 0 || got.ServerScale != 0 || got.TSVal != 0 || got.TSEcr != 0 || got.MSS != 1428 {
		t.Errorf("without options: %+v, %v", got, err)
	}
}

func TestTransportSaysWhatCannotContinue(t *testing.T) {
	for what, spoil := range map[string]func(*Socket){
		"a gap":                    func(s *Socket) { s.Gaps = true },
		"the peer's FIN":           func(s *Socket) { s.State = CloseWait },
		"an acknowledged FIN":      func(s *Socket) { s.State = FinWait2 },
		"still connecting":         func(s *Socket) { s.State = SynSent },
		"no sequence numbers":      func(s *Socket) { s.Sequenced = false },
		"repair":                   func(s *Socket) { s.Repair = true },
		"Multipath TCP":            func(s *Socket) { s.MPTCP = true },
		"very small segments":      func(s *Socket) { s.MSSClamp = 1000 },
		"an unacknowledged SYN":    func(s *Socket) { s.BytesAcked = 0 },
		"very small segments told": func(s *Socket) { s.AdvMSS = 1000 },
	} {
		s := healthy()
		spoil(&s)
		if _, err := s.Transport(); !errors.Is(err, ErrStuck) {
			t.Errorf("%s: %v, want ErrStuck", what, err)
		}
	}
	s := healthy()
	s.State = FinWait1
	if _, err := s.Transport(); err != nil {
		t.Errorf("a FIN that will be sent again: %v", err)
	}
}

// The two ends of a connection agree on what a third would have to know.
func TestBothEndsAgreeOnTransport(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	exchange(t, c.mover, c.other, "hello")
	exchange(t, c.other, c.mover, "hello you")
	km, ko := openIn(t, w.mover), openIn(t, w.other)
	if _, err := io.WriteString(c.mover, "unread"); err != nil {
		t.Fatal(err)
	}
	mine := await(t, km, c.mover, "all acknowledged", func(s Socket) bool { return s.InFlight() == 0 })
	theirs := one(t, ko, c.other)
	got, err := mine.Transport()
	if err != nil {
		t.Fatal(err)
	}
	if got.SndUna != theirs.RcvNxt || got.RcvNxt != theirs.SndUna || got.Sent != theirs.BytesReceived || got.Sent != 11 || got.Received != 9 {
		t.Errorf("the client says %+v, the server %+v", got, theirs)
	}
	if uint32(got.MSS) != theirs.MSSClamp || got.ClientScale != theirs.SndShift || got.ServerScale != theirs.RcvShift {
		t.Errorf("options: the client says %+v, the server %+v", got, theirs)
	}
	if age := int32(got.TSVal - theirs.TSRecent); age < 0 || age > 60_000 {
		t.Errorf("timestamp %d, the server saw %d last", got.TSVal, theirs.TSRecent)
	}
}
