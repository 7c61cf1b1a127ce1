package ofconn

import (
	"bufio"
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// A peer is the switch's end of a connection, and does what a test tells it.
type peer struct {
	t  *testing.T
	nc net.Conn
	in *bufio.Reader
}

func newPeer(t *testing.T, nc net.Conn) *peer { return &peer{t, nc, bufio.NewReader(nc)} }

const datapath = 0x77

// say sends a message in the version that it has, 1.5 if none.
func (p *peer) say(xid uint32, b ofp.Body) {
	p.t.Helper()
	p.sayIn(ofp.V15, xid, b)
}

func (p *peer) sayIn(v ofp.Version, xid uint32, b ofp.Body) {
	p.t.Helper()
	bytes, err := ofp.Message{Version: v, XID: xid, Body: b}.Append(nil)
	if err != nil {
		p.t.Errorf("%T: %v", b, err)
	}
	p.raw(bytes)
}

// raw sends bytes; that the other side has hung up is for the test to see elsewhere.
func (p *peer) raw(b []byte) { p.nc.Write(b) }

// hear waits for a message; ok is false when the other side has hung up.
func (p *peer) hear() (m ofp.Message, ok bool) {
	p.t.Helper()
	b := make([]byte, ofp.HeaderLen)
	if _, err := io.ReadFull(p.in, b); err != nil {
		return m, false
	}
	h, err := ofp.ParseHeader(b)
	if err != nil {
		p.t.Errorf("we sent % x: %v", b, err)
		return m, false
	}
	b = append(b, make([]byte, h.Len-len(b))...)
	if _, err := io.ReadFull(p.in, b[ofp.HeaderLen:]); err != nil {
		return m, false
	}
	if m, err = ofp.Parse(b); err != nil {
		p.t.Errorf("we sent % x: %v", b, err)
	}
	return m, err == nil
}

// want waits for a message of that type.
func (p *peer) want(t ofp.Type) ofp.Message {
	p.t.Helper()
	m, ok := p.hear()
	if !ok || m.Body.Type(m.Version) != t {
		p.t.Errorf("the switch heard %+v, want %v", m, t)
	}
	return m
}

// wantBoth waits for two messages of these types, whichever is first: two goroutines write them.
func (p *peer) wantBoth(one, other ofp.Type) (heard [2]ofp.Message) {
	p.t.Helper()
	m, ok := p.hear()
	if ok && m.Body.Type(m.Version) == other {
		return [2]ofp.Message{p.want(one), m}
	}
	if !ok || m.Body.Type(m.Version) != one {
		p.t.Errorf("the switch heard %+v, want %v or %v", m, one, other)
	}
	return [2]ofp.Message{m, p.want(other)}
}

// shake does the switch's part of the handshake.
func (p *peer) shake() {
	p.t.Helper()
	p.want(ofp.TypeHello)
	p.say(0, ofp.Hello{Versions: ofp.Versions(ofp.V13, ofp.V15)})
	p.say(p.want(ofp.TypeFeaturesRequest).XID, ofp.FeaturesReply{DatapathID: datapath})
}

// obey answers barriers and echoes until the other side hangs up, and has do look at what else comes.
func (p *peer) obey(do func(ofp.Message)) {
	for {
		m, ok := p.hear()
		if !ok {
			return
		}
		switch body := m.Body.(type) {
		case ofp.BarrierRequest:
			p.say(m.XID, ofp.BarrierReply{})
		case ofp.EchoRequest:
			p.say(m.XID, ofp.EchoReply(body))
		default:
			do(m)
		}
	}
}

func nothing(ofp.Message) {}

// bubble runs a test in time that passes when everybody waits, with the switch's side as a goroutine.
func bubble(t *testing.T, cfg Config, script func(p *peer), test func(t *testing.T, c *Conn)) {
	t.Helper()
	pipe(t, cfg, func(p *peer) { p.shake(); script(p) }, func(t *testing.T, c *Conn, err error) {
		if err != nil {
			t.Fatalf("New: %v", err)
		}
		if c.Features().DatapathID != datapath || c.Version() != ofp.V15 {
			t.Errorf("the switch is %+v in %v, want %#x in 1.5", c.Features(), c.Version(), datapath)
		}
		test(t, c)
		c.Close()
	})
}

// pipe is bubble for a handshake that may fail.
func pipe(t *testing.T, cfg Config, script func(p *peer), test func(t *testing.T, c *Conn, err error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		p := newPeer(t, theirs)
		gone := make(chan struct{})
		go func() { defer close(gone); defer theirs.Close(); script(p) }()
		c, err := New(t.Context(), ours, cfg)
		test(t, c, err)
		<-gone
	})
}

// within gives a question a minute of the bubble's time: more than any answer takes.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
