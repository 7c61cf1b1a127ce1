package ends

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/bpf/divert"
	"scaffold.dev/scaffold/internal/packet/segment"
)

// A SYN is held until one of Accept, Pass, Refuse and Drop is called, or the time for that is over; then it passes.
type SYN struct {
	Client, Server netip.AddrPort
	Lane           uint64 // its number
	Options        frame.Options

	ends    *Ends
	held    divert.HeldSYN
	decided atomic.Bool
	late    *time.Timer
}

// ErrDecided is what all calls but the first to decide say, and all that come too late.
var ErrDecided = divert.ErrDecided

// read takes SYNs from the kernel until Close.
func (e *Ends) read() {
	for {
		held, err := e.kernel.Read()
		if err != nil {
			return // by Close: a ring does not fail otherwise
		}
		s := &SYN{Client: held.Client, Server: held.Server, Lane: held.Lane, Options: held.Options, ends: e, held: held}
		if held.Frame, err = segment.Completed(held.Frame); err != nil {
			e.damaged(s)
			continue
		}
		s.held = held
		e.offer(s)
	}
}

// damaged drops a SYN as the kernel would have, had it not been held: its addresses may be another connection's.
func (e *Ends) damaged(s *SYN) {
	e.mu.Lock()
	e.unproven++
	e.mu.Unlock()
	_ = e.kernel.Forget(s.held) // held no more is as good
}

func (e *Ends) offer(s *SYN) {
	e.mu.Lock()
	if e.waiting[pair{s.Server, s.Client}] != nil {
		e.mu.Unlock()
		e.acceptAgain(s)
		return
	}
	e.pending[s] = true
	s.late = time.AfterFunc(e.hold, s.lapse)
	e.mu.Unlock()
	select {
	case e.syns <- s:
	default: // many were decided about otherwise before anybody asked
		s.lapse()
	}
}

// acceptAgain is for a client whose SYN was accepted already, and was lost at the listener: its queue was full.
func (e *Ends) acceptAgain(s *SYN) {
	if e.kernel.Accept(s.held) == nil {
		_ = e.wires.again(s.held) // the client sends another one
	}
}

// lapse lets the SYN go on where nobody decides. Where that fails the client's next one goes on.
func (s *SYN) lapse() { _ = s.Pass() }

// settle is the end of the hold: the caller is the only one who decides.
func (s *SYN) settle() bool {
	if !s.decided.CompareAndSwap(false, true) {
		return false
	}
	s.ends.mu.Lock()
	delete(s.ends.pending, s)
	s.late.Stop()
	s.ends.mu.Unlock()
	return true
}

// Accept answers the client as the server would, and returns the connection once the client's handshake is over. Its local
// address is the server's, its remote address the client's. When ctx ends before, the client is reset if it still comes.
func (s *SYN) Accept(ctx context.Context) (*net.TCPConn, error) {
	if !s.settle() {
		return nil, ErrDecided
	}
	e, p := s.ends, pair{s.Server, s.Client}
	if err := e.kernel.Renew(p.local, p.remote); err != nil { // the client has heard nothing yet
		return nil, errors.Join(err, s.pass())
	}
	arrived := e.expect(p)
	defer e.give(p, arrived)
	if err := e.kernel.Accept(s.held); err != nil {
		return nil, errors.Join(err, e.kernel.End(p.local, p.remote))
	}
	if err := e.wires.again(s.held); err != nil {
		return nil, fmt.Errorf("accept %v from %v: %w", s.Server, s.Client, err)
	}
	select {
	case c := <-arrived:
		return c, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("handshake of %v with %v: %w", s.Client, s.Server, ctx.Err())
	case <-e.done:
		return nil, ErrClosed
	}
}

// Pass lets the SYN go on to the server, and the connection with it.
func (s *SYN) Pass() error {
	if !s.settle() {
		return ErrDecided
	}
	return s.pass()
}

func (s *SYN) pass() error {
	if err := s.ends.kernel.Pass(s.held); err != nil {
		return err
	}
	return s.ends.wires.again(s.held)
}

// Refuse answers RST, as a server does at whose port nobody listens.
func (s *SYN) Refuse() error {
	if !s.settle() {
		return ErrDecided
	}
	if err := s.ends.kernel.Forget(s.held); err != nil {
		return err
	}
	return s.ends.wires.out(s.held.Port, segment.Refusal(s.held.Frame))
}

// Drop is silent, as a server is that is not there. A SYN that the client sends again is another one.
func (s *SYN) Drop() error {
	if !s.settle() {
		return ErrDecided
	}
	return s.ends.kernel.Forget(s.held)
}
