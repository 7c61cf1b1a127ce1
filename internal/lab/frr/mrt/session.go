package mrt

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// A Session is a neighbour of a BGP daemon that announces and takes in nothing.
type Session struct {
	speaker Speaker
	conn    net.Conn
	in      *bufio.Reader
	done    chan struct{}
	hold    time.Duration // the shorter of the daemon's time and ours; 0: neither gives the other up

	mu  sync.Mutex // of writes: updates and keepalives
	err error      // why it ended; valid after done
}

// HoldTime is after what silence either side gives the session up (RFC 4271 §4.2 asks for at least 3 s), unless the
// daemon wants less; we speak three times as often.
const HoldTime = 9 * time.Second

// openTime bounds the exchange of openings.
const openTime = 10 * time.Second

// asTrans stands for a number that two octets do not hold (RFC 6793).
const asTrans = 23456

// Open opens a session on a connection to the daemon's port 179, which it owns from then on.
func Open(conn net.Conn, speaker Speaker) (*Session, error) {
	s := &Session{speaker: speaker, conn: conn, in: bufio.NewReader(conn), done: make(chan struct{}), hold: HoldTime}
	err := speaker.check()
	if err == nil {
		conn.SetDeadline(time.Now().Add(openTime))
		err = s.open()
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("BGP session with %v: %w", conn.RemoteAddr(), err)
	}
	conn.SetDeadline(time.Time{})
	go s.listen()
	go s.keep()
	return s, nil
}

// open says who we are, and reads who the daemon is and that it agrees.
func (s *Session) open() error {
	hello, err := s.hello()
	if err != nil {
		return err
	}
	if err := s.send(hello); err != nil {
		return err
	}
	for _, want := range []uint8{bgp.BGP_MSG_OPEN, bgp.BGP_MSG_KEEPALIVE} {
		m, err := s.receive(true)
		if err != nil {
			return err
		}
		if m.Header.Type != want {
			return fmt.Errorf("message of type %d while opening, want %d", m.Header.Type, want)
		}
		if want == bgp.BGP_MSG_OPEN {
			if err := s.send(bgp.NewBGPKeepAliveMessage()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Session) hello() (*bgp.BGPMessage, error) {
	as := uint16(asTrans)
	if s.speaker.AS <= 0xffff {
		as = uint16(s.speaker.AS)
	}
	capabilities := []bgp.ParameterCapabilityInterface{
		bgp.NewCapMultiProtocol(bgp.RF_IPv4_UC),
		bgp.NewCapMultiProtocol(bgp.RF_IPv6_UC),
		bgp.NewCapFourOctetASNumber(s.speaker.AS),
		bgp.NewCapExtendedNexthop([]*bgp.CapExtendedNexthopTuple{bgp.NewCapExtendedNexthopTuple(bgp.RF_IPv4_UC, bgp.AFI_IP6)}),
	}
	return bgp.NewBGPOpenMessage(as, uint16(HoldTime/time.Second), s.speaker.ID,
		[]bgp.OptionParameterInterface{bgp.NewOptionParameterCapability(capabilities)})
}

func (s *Session) send(m *bgp.BGPMessage) error {
	b, err := m.Serialize()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = s.conn.Write(b)
	return err
}

// receive reads one message. A notification is an error that says what the daemon did not like. Of updates only
// the header is looked at.
func (s *Session) receive(opening bool) (*bgp.BGPMessage, error) {
	raw := make([]byte, bgp.BGP_HEADER_LENGTH)
	if _, err := io.ReadFull(s.in, raw); err != nil {
		return nil, err
	}
	h := bgp.BGPHeader{}
	if err := h.DecodeFromBytes(raw); err != nil {
		return nil, err
	}
	if h.Len < bgp.BGP_HEADER_LENGTH {
		return nil, fmt.Errorf("message of %d bytes", h.Len)
	}
	body := make([]byte, h.Len-bgp.BGP_HEADER_LENGTH)
	if _, err := io.ReadFull(s.in, body); err != nil {
		return nil, err
	}
	if h.Type == bgp.BGP_MSG_NOTIFICATION && len(body) >= 2 {
		return nil, fmt.Errorf("the daemon ends it: notification %d, %d (RFC 4271 §4.5)", body[0], body[1])
	}
	if opening && h.Type == bgp.BGP_MSG_OPEN && len(body) >= 5 {
		s.hold = min(s.hold, time.Duration(binary.BigEndian.Uint16(body[3:]))*time.Second)
	}
	return &bgp.BGPMessage{Header: h}, nil
}

// listen takes in what the daemon says until it ends the session or falls silent.
func (s *Session) listen() {
	defer close(s.done)
	for {
		if s.hold != 0 {
			s.conn.SetReadDeadline(time.Now().Add(s.hold))
		}
		if _, err := s.receive(false); err != nil {
			s.err = fmt.Errorf("BGP session with %v ended: %w", s.conn.RemoteAddr(), err)
			s.conn.Close()
			return
		}
	}
}

// keep speaks often enough for the daemon not to give us up.
func (s *Session) keep() {
	if s.hold == 0 {
		return
	}
	tick := time.NewTicker(s.hold / 3)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-tick.C:
			s.send(bgp.NewBGPKeepAliveMessage()) //nolint:errcheck // listen sees that it failed
		}
	}
}

// Done is closed when the session has ended; Err then says why.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err is why the session ended.
func (s *Session) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Close ends the session: the daemon forgets what was announced.
func (s *Session) Close() error {
	err := s.send(bgp.NewBGPNotificationMessage(bgp.BGP_ERROR_CEASE, bgp.BGP_ERROR_SUB_PEER_DECONFIGURED, nil))
	s.conn.Close()
	<-s.done
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
