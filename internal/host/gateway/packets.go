package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// maxDatagram is more than any datagram has.
const maxDatagram = 1 << 16

// datagrams are buffers of them.
var datagrams = sync.Pool{New: func() any { return new([maxDatagram]byte) }}

// packets takes datagrams at a door: those of one client, sent to one of our addresses, are a session with a
// socket of its own towards the service.
type packets struct {
	d      *door
	socket *net.UDPConn
	v4     bool

	mu       sync.Mutex
	sessions map[pair]*session // nil when there is to be none any more
}

// A pair is what a session is known by.
type pair struct {
	Client netip.AddrPort
	Local  netip.Addr // the address of ours that the client asked, and is to be answered from
}

func newPackets(d *door, had *inherited) (*packets, error) {
	p := &packets{d: d, v4: d.at.network == "udp4", sessions: map[pair]*session{}}
	conn, err := had.packetConn(d.at)
	if conn == nil && err == nil {
		conn, err = listenPackets(d.at)
	}
	if err != nil {
		return nil, err
	}
	if p.v4 {
		err = ipv4.NewPacketConn(conn).SetControlMessage(ipv4.FlagDst, true)
	} else {
		err = ipv6.NewPacketConn(conn).SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	p.socket = conn
	return p, nil
}

func listenPackets(at socket) (*net.UDPConn, error) {
	addr, err := net.ResolveUDPAddr(at.network, at.address) // literal: it was checked
	if err != nil {
		return nil, err
	}
	return net.ListenUDP(at.network, addr)
}

func (p *packets) serve() {
	buf, oob := make([]byte, maxDatagram), make([]byte, 128)
	for {
		n, oobn, _, from, err := p.socket.ReadMsgUDPAddrPort(buf, oob)
		if err != nil {
			if p.d.closing.Load() || errors.Is(err, net.ErrClosed) {
				return
			}
			p.d.g.complain("receive at "+p.d.at.String(), err)
			if !errors.Is(err, unix.ECONNREFUSED) { // an error of one client, as ICMP tells it
				time.Sleep(errorPause)
			}
			continue
		}
		p.take(buf[:n], pair{netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), p.local(oob[:oobn])})
	}
}

// local is the address that a datagram came to.
func (p *packets) local(oob []byte) netip.Addr {
	var dst net.IP
	var index int
	if p.v4 {
		var m ipv4.ControlMessage
		if m.Parse(oob) == nil {
			dst = m.Dst
		}
	} else {
		var m ipv6.ControlMessage
		if m.Parse(oob) == nil {
			dst, index = m.Dst, m.IfIndex
		}
	}
	a, _ := netip.AddrFromSlice(dst)
	if a = a.Unmap(); a.Is6() && a.IsLinkLocalUnicast() {
		a = a.WithZone(fmt.Sprint(index))
	}
	return a
}

// take passes a datagram on, in a session that is there or a new one.
func (p *packets) take(b []byte, who pair) {
	p.mu.Lock()
	s := p.sessions[who]
	p.mu.Unlock()
	if s != nil && s.send(b) {
		return
	}
	if s = p.begin(who); s != nil {
		s.send(b)
	}
}

// begin makes a session, where there is room for it: a datagram has no queue to wait in.
func (p *packets) begin(who pair) *session {
	c := &p.d.count
	if p.d.closing.Load() {
		return nil
	}
	if !p.d.room.try() {
		c.full.Add(1)
		return nil
	}
	if !p.d.g.room.try() {
		p.d.room.leave()
		c.full.Add(1)
		return nil
	}
	if !p.d.g.crowd.enter(who.Client.Addr()) {
		p.d.leave()
		c.crowded.Add(1)
		return nil
	}
	s, err := p.connect(who)
	if err != nil {
		p.d.g.crowd.leave(who.Client.Addr())
		p.d.leave()
		c.failed.Add(1)
		p.d.g.complain("connect to "+p.d.want.Load().Target(), err)
		return nil
	}
	c.accepted.Add(1)
	p.start(s)
	return s
}

// start runs a session that has entered.
func (p *packets) start(s *session) {
	p.mu.Lock()
	p.sessions[s.who] = s
	p.mu.Unlock()
	p.d.g.flows.Go(func() {
		s.run()
		p.mu.Lock()
		if p.sessions[s.who] == s {
			delete(p.sessions, s.who)
		}
		p.mu.Unlock()
		p.d.g.crowd.leave(s.who.Client.Addr())
		p.d.leave()
	})
}

// drain takes no new clients; the socket stays as long as sessions answer by it.
func (p *packets) drain() {
	_ = p.socket.SetReadDeadline(time.Now()) // of an open socket
	p.d.ended.Wait()
	if p.empty() {
		p.socket.Close()
		return
	}
	_ = p.socket.SetReadDeadline(time.Time{})
	p.d.g.flows.Go(p.linger)
}

// linger passes on what clients of sessions send, and closes the socket after the last of them.
func (p *packets) linger() {
	defer p.socket.Close()
	buf, oob := make([]byte, maxDatagram), make([]byte, 128)
	for !p.empty() {
		_ = p.socket.SetReadDeadline(time.Now().Add(time.Second))
		n, oobn, _, from, err := p.socket.ReadMsgUDPAddrPort(buf, oob)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			p.take(buf[:n], pair{netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), p.local(oob[:oobn])})
		}
	}
}

func (p *packets) empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sessions) == 0
}

func (p *packets) conn() syscall.Conn { return p.socket }

// hand lets go of the socket and of the sessions: the next gateway goes on with both.
func (p *packets) hand() []inheritedSession {
	_ = p.socket.SetReadDeadline(time.Now()) // of an open socket
	p.d.ended.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []inheritedSession
	for _, s := range p.sessions {
		s.handed.Store(true)
		_ = s.conn.SetReadDeadline(time.Now()) // the reader lets go
		all = append(all, inheritedSession{at: p.d.at, who: s.who, conn: s.conn})
	}
	p.socket.Close()
	return all
}

func (p *packets) abort() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sessions {
		s.conn.Close()
	}
}
