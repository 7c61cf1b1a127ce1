package emubench

import (
	"context"
	"net"
	"time"

	"scaffold.dev/scaffold/bench/place"
)

// meet waits until a datagram passes: by then all neighbours know each other.
func (c *Chain) meet(ctx context.Context) error {
	var in, out *net.UDPConn
	err := c.to.In(func() (err error) { in, err = net.ListenUDP("udp6", net.UDPAddrFromAddrPort(c.target())); return err })
	if err != nil {
		return err
	}
	defer in.Close()
	err = c.from.In(func() (err error) {
		out, err = net.DialUDP("udp6", nil, net.UDPAddrFromAddrPort(c.target()))
		return err
	})
	if err != nil {
		return err
	}
	defer out.Close()
	return place.Await(ctx, "no datagram passes", func() error { return passes(out, in) })
}

// passTime is how long one datagram may take.
const passTime = 100 * time.Millisecond

func passes(out, in *net.UDPConn) error {
	if _, err := out.Write([]byte{1}); err != nil {
		return err
	}
	if err := in.SetReadDeadline(time.Now().Add(passTime)); err != nil {
		return err
	}
	_, err := in.Read(make([]byte, 1))
	return err
}
