package scaffold

import (
	"context"
	"fmt"
	"net"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// CloseFail closes an accepted connection so that it fails over; see [Host.CloseFail].
func CloseFail(c net.Conn) error {
	return local.CloseFail(context.Background(), c)
}

// CloseFail closes an accepted connection and tells the client's host that it failed here. What follows
// is the service's policy: with failover "continue" another instance goes on with it and the client's
// program notices nothing, with "reset" the program gets ECONNRESET and may try again. What was written
// and not acknowledged by the client is lost; [Identity.Sent] tells the next instance where that begins.
//
// The connection is closed in any case. Where the daemon could not be told it is reset, so that half an
// answer never looks whole, and the error says why.
func (h *Host) CloseFail(ctx context.Context, c net.Conn) error {
	_, err := h.fail(ctx, &apiv1.FailFlowsRequest{Proto: proto(c.LocalAddr()), Local: c.LocalAddr().String(), Peer: c.RemoteAddr().String(), Reason: "closed by its server"})
	abort(c)
	if err != nil {
		return fmt.Errorf("fail over the connection of %v: %w", c.RemoteAddr(), err)
	}
	return nil
}

// FailPeer is CloseFail for what one peer sends to a socket that serves many, as UDP servers have: the
// peer's next datagram goes to an instance that is chosen anew. The socket stays open.
func (h *Host) FailPeer(ctx context.Context, at, peer net.Addr) error {
	_, err := h.fail(ctx, &apiv1.FailFlowsRequest{Proto: proto(at), Local: at.String(), Peer: peer.String(), Reason: "shed by its server"})
	if err != nil {
		return fmt.Errorf("fail over the flow of %v: %w", peer, err)
	}
	return nil
}

// FailAll sheds all connections that were accepted from a listener; see [Host.FailAll].
func FailAll(l net.Listener) (int, error) {
	return local.FailAll(context.Background(), l.Addr())
}

// FailAll sheds all flows of the service, protocol and port that the address stands for, on this host,
// and returns how many there were. It takes the address of a listener, or the local one of a packet
// connection. New flows may still come: drain the instance first, or close the listener.
func (h *Host) FailAll(ctx context.Context, at net.Addr) (int, error) {
	service, port, err := served(at)
	if err != nil {
		return 0, err
	}
	n, err := h.fail(ctx, &apiv1.FailFlowsRequest{Service: service, Proto: proto(at), Port: port, Reason: "shed by its server"})
	if err != nil {
		return n, fmt.Errorf("fail over the flows of %v: %w", at, err)
	}
	return n, nil
}

func (h *Host) fail(ctx context.Context, req *apiv1.FailFlowsRequest) (int, error) {
	d, err := h.dial()
	if err != nil {
		return 0, err
	}
	defer d.Close()
	res, err := d.local.FailFlows(ctx, connect.NewRequest(req))
	if err != nil {
		return 0, d.explain("failing flows over", err)
	}
	return int(res.Msg.Failed), nil
}

// abort closes without a FIN: the kernel forgets the connection and sends an RST, which the edge lets
// pass only where the flow was not told to fail over.
func abort(c net.Conn) {
	for {
		if wrapped, ok := c.(interface{ NetConn() net.Conn }); ok { // as *tls.Conn
			c = wrapped.NetConn()
			continue
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
		c.Close()
		return
	}
}

// served is the service, as an address, and the port of a listener.
func served(at net.Addr) (service string, port uint32, err error) {
	switch a := at.(type) {
	case *net.TCPAddr:
		return a.IP.String(), uint32(a.Port), nil
	case *net.UDPAddr:
		return a.IP.String(), uint32(a.Port), nil
	}
	return "", 0, fmt.Errorf("%v: want the address of a TCP or UDP socket, have %T", at, at)
}
