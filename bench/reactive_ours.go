package bench

import (
	"context"
	"fmt"
	"io"
	"net"

	"scaffold.dev/scaffold/internal/openflow/ofconn"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/packet/header"
)

// reactiveIdle is how long in s a flow without packets stays in the switch; reactive.py has the same.
const reactiveIdle = 10

// reactiveWaiting is how many punted packets may wait for the controller: more than one burst brings.
const reactiveWaiting = 1 << 16

// A reactive controller puts in an exact flow for each packet that the switch punts, and sends it out.
type reactive struct {
	ctx context.Context
	out io.Writer
}

// ReactiveController serves switches at an address until ctx ends, and prints a line for each that is ready.
func ReactiveController(ctx context.Context, address string, out io.Writer) error {
	l, err := ofconn.Listen(ctx, "tcp:"+address, nil)
	if err != nil {
		return err
	}
	ofconn.Serve(ctx, l, ofconn.Config{Versions: ofp.Versions(ofp.V13), PacketIns: reactiveWaiting}, &reactive{ctx, out})
	return nil
}

// Refused implements ofconn.Handler.
func (r *reactive) Refused(from net.Addr, err error) { fmt.Fprintf(r.out, "%v: %v\n", from, err) }

// Switch implements ofconn.Handler.
func (r *reactive) Switch(c *ofconn.Conn) {
	punt := ofp.FlowMod{Match: ofp.Match{ofp.Uint(ofp.EthType, ethIPv6), ofp.Uint(ofp.IPProto, protoUDP)},
		Instructions: ofp.Apply(ofp.Output{Port: ofp.PortController, MaxLen: ofp.WholePacket})}
	if err := c.Do(r.ctx, ofp.FlowMod{Command: ofp.FlowDelete, Table: ofp.AllTables}, punt); err != nil {
		r.Refused(c.RemoteAddr(), err)
		return
	}
	fmt.Fprintln(r.out, reactiveReady)
	go func() { // ends with the connection
		for range c.Events() {
		}
	}()
	for p := range c.PacketIns() {
		flow, packet, ok := react(p)
		if ok && c.Send(flow, packet) != nil {
			return
		}
	}
}

const (
	ethIPv6  = header.EtherIPv6
	protoUDP = header.UDP
	ipFrame  = header.EthernetLen + header.IPv6Len // bytes before UDP's header
	udpFrame = ipFrame + header.UDPLen             // before the payload
)

// react is what a new flow gets: itself, and a way for its first packet, out of the other of the two ports.
func react(p ofp.PacketIn) (ofp.FlowMod, ofp.PacketOut, bool) {
	b := p.Data
	if len(b) < udpFrame {
		return ofp.FlowMod{}, ofp.PacketOut{}, false
	}
	ip := header.IPv6(b[header.EthernetLen:])
	out := []ofp.Action{ofp.Output{Port: 3 - p.InPort()}}
	flow := ofp.FlowMod{Priority: 1, IdleTimeout: reactiveIdle, Instructions: ofp.Apply(out...), Match: ofp.Match{
		ofp.Uint(ofp.InPort, uint64(p.InPort())), ofp.Uint(ofp.EthType, ethIPv6), ofp.Uint(ofp.IPProto, protoUDP),
		ofp.Addr(ofp.IPv6Src, ip.Src()), ofp.Addr(ofp.IPv6Dst, ip.Dst()),
		ofp.Bytes(ofp.UDPSrc, b[ipFrame:ipFrame+2], nil), ofp.Bytes(ofp.UDPDst, b[ipFrame+2:ipFrame+4], nil),
	}}
	return flow, ofp.PacketOut{InPort: p.InPort(), Actions: out, Data: b}, true
}
