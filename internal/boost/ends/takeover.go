package ends

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/bpf/repair"
	"scaffold.dev/scaffold/internal/packet/checksum"
	"scaffold.dev/scaffold/internal/packet/segment"
)

// ErrLost says that a connection cannot go on: its end host was reset, or says that there is none.
var ErrLost = errors.New("the connection cannot go on")

// asksAgain is how often an end host is asked that does not answer: its segments may not come here yet.
const asksAgain = 200 * time.Millisecond

// ahead is how much further the clock of a restored socket goes than any timestamp that the end host has seen: segments of the
// lost agent that are still to come are older than that, whatever the unit of its clock.
const ahead = 1 << 24

// TakeOver goes on with the connection of an end host whose agent is lost. It asks the end host where it stands, until ctx
// ends or segments of it come by this machine: no other one has a socket for it then that hears it. It returns the connection,
// of which nothing was read, and what the end host has received, as an offset. ErrSilent: the end host was not heard, and
// nothing has changed.
func (e *Ends) TakeOver(ctx context.Context, m frame.Takeover) (*net.TCPConn, uint64, error) {
	p := pair{m.Open.Client, m.Server}
	if m.Client {
		p = pair{m.Server, m.Open.Client}
	}
	j := judge{ask: m}
	if err := e.kernel.Begin(p.local, p.remote); err != nil { // it is carried here, and nobody is asked
		return nil, 0, fmt.Errorf("%w: %w", ErrInUse, err)
	}
	err := e.ask(ctx, p, &j)
	if err := errors.Join(err, e.kernel.End(p.local, p.remote)); err != nil { // a session without a socket is swept
		return nil, 0, err
	}
	c, err := e.restore(p, &j)
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("%w: %w", ErrLost, err), e.cutOff(p, &j))
	}
	return c, j.wants(), nil
}

// ask asks the end host until it has proved that the connection can go on.
func (e *Ends) ask(ctx context.Context, p pair, j *judge) error {
	said, done, err := e.ears.listen(p)
	if err != nil {
		return err
	}
	defer done()
	tick := time.NewTicker(asksAgain)
	defer tick.Stop()
	v := unknown
	if err := e.send(p, j.question(p)); err != nil {
		return err
	}
	for {
		select {
		case h := <-said:
			v = j.take(time.Now(), h)
		case <-tick.C:
			if v = j.late(time.Now()); v == unknown {
				err = e.send(p, j.question(p))
			}
		case <-ctx.Done():
			err = ErrSilent
		case <-e.done:
			err = ErrClosed
		}
		if v == again {
			err = e.send(p, j.question(p))
		}
		switch {
		case v == goesOn:
			return nil
		case v == gone:
			return fmt.Errorf("%w: the end host has none", ErrLost)
		case v == lost, err != nil && !j.first.IsZero(): // it was heard: nobody else goes on with it
			return errors.Join(ErrLost, err, e.cutOff(p, j))
		case err != nil:
			return err
		}
	}
}

// question is a byte that the end host has had: TCP answers it by where it stands (RFC 9293 §3.10.7.4). One without a byte
// Linux answers twice a second at most.
func (j *judge) question(p pair) []byte {
	return j.segment(p, j.sequence(j.ask.Kept.From)-1, flagACK|flagPSH, []byte{0})
}

// cutOff resets an end host that was heard: by the number that it expects, which alone it believes (RFC 5961 §3.2).
func (e *Ends) cutOff(p pair, j *judge) error {
	return e.send(p, j.segment(p, j.last.ack, flagACK|flagRST, nil))
}

// window is what a question says of room: little, so that nothing comes before there is a socket.
const window = 1

// segment is a packet in the lost agent's name.
func (j *judge) segment(p pair, seq uint32, flags byte, payload []byte) []byte {
	options := j.stamps()
	b := segment.AppendIP(nil, p.local.Addr(), p.remote.Addr(), tcpLen+len(options)+len(payload))
	at := len(b)
	b = binary.BigEndian.AppendUint16(b, p.local.Port())
	b = binary.BigEndian.AppendUint16(b, p.remote.Port())
	b = binary.BigEndian.AppendUint32(b, seq)
	b = binary.BigEndian.AppendUint32(b, j.expects())
	b = append(b, byte(tcpLen+len(options))/4<<4, flags)
	b = binary.BigEndian.AppendUint16(b, window)
	b = append(append(append(b, 0, 0, 0, 0), options...), payload...)
	binary.BigEndian.PutUint16(b[at+checksumAt:], ^checksum.Transport(p.local.Addr(), p.remote.Addr(), protoTCP, b[at:]))
	return b
}

// stamps are the timestamps of a question, where the connection has them: of the SYN, for no later one is known. That it is
// old the end host answers, too (RFC 7323 §5.3).
func (j *judge) stamps() []byte {
	if !j.ask.Host.HasTimestamps || !j.ask.Own.HasTimestamps {
		return nil
	}
	b := binary.BigEndian.AppendUint32([]byte{1, 1, 8, 10}, j.ask.Own.Timestamp)
	return binary.BigEndian.AppendUint32(b, j.ask.Host.Timestamp)
}

// send sends a packet with its IP header.
func (e *Ends) send(p pair, packet []byte) error {
	family, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Addr: p.remote.Addr().As16()})
	if p.remote.Addr().Is4() {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Addr: p.remote.Addr().As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return fmt.Errorf("raw socket to ask an end host: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, Carried); err != nil {
		return fmt.Errorf("raw socket to ask an end host: %w", err)
	}
	if err := unix.Sendto(fd, packet, 0, to); err != nil {
		return fmt.Errorf("ask %v: %w", p.remote, err)
	}
	return nil
}

// restore makes the socket: established, with nothing on its way.
func (e *Ends) restore(p pair, j *judge) (*net.TCPConn, error) {
	if err := e.kernel.Begin(p.local, p.remote); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInUse, err)
	}
	c, err := restored(j.connection(p))
	if err != nil {
		return nil, errors.Join(err, e.kernel.End(p.local, p.remote))
	}
	return c, nil
}

// leastMSS is what a host takes that has said nothing of it (RFC 9293 §3.7.1).
func leastMSS(a netip.Addr) uint16 {
	if a.Is4() {
		return 536
	}
	return 1220
}

// room is what a restored socket is taken to have granted: the end host has nothing on its way beyond what was received.
const room = 65535

// connection is all that a kernel needs to go on with the connection.
func (j *judge) connection(p pair) *repair.Connection {
	host, own := j.ask.Host, j.ask.Own
	c := &repair.Connection{
		Local: p.local, Peer: p.remote, SndUna: j.last.ack, RcvFirst: j.expects(),
		MSS: uint32(cmp.Or(host.MSS, leastMSS(p.local.Addr()))), WindowScale: host.Scaled && own.Scaled,
		SACK: host.SACK && own.SACK, Timestamps: host.HasTimestamps && own.HasTimestamps,
		Prepare: func(fd int) error { return asEndHost(fd, p.local.Addr().Is6()) },
	}
	granted := uint32(j.last.window)
	if c.WindowScale {
		c.SndShift, c.RcvShift = host.WindowScale, own.WindowScale
		granted <<= host.WindowScale
	}
	if c.Timestamps {
		seen := own.Timestamp
		if j.last.echoes {
			seen = j.last.echo
		}
		c.Timestamp = (seen + ahead) &^ 1 // even: the clock counts milliseconds
	}
	c.Window = repair.Window{SndWl1: j.expects(), SndWnd: granted, MaxWnd: max(granted, c.MSS), RcvWnd: room, RcvWup: j.expects()}
	return c
}

// restored is the connection once it speaks.
func restored(c *repair.Connection) (*net.TCPConn, error) {
	fd, err := c.Restore()
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "connection that was taken over")
	defer file.Close()
	if err := c.Finish(fd); err != nil {
		return nil, err
	}
	// The kernel has taken this back with the freeze.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return nil, err
	}
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	tcp := conn.(*net.TCPConn)
	return tcp, tcp.SetKeepAliveConfig(alive)
}
