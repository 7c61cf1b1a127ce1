package ofconn

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"

	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A busy reader is held up between one read and the next, as by a processor that others use.
type busyReader struct {
	net.Conn
	held sync.RWMutex
}

func (b *busyReader) Read(to []byte) (int, error) {
	n, err := b.Conn.Read(to)
	b.held.RLock()
	defer b.held.RUnlock()
	return n, err
}

// TestABurstWaitsWhileNobodyReads: Open vSwitch keeps a hundred messages for a connection that takes none, and drops the
// others and says nothing. A thousand first packets of flows are more than a connection takes by default.
func TestABurstWaitsWhileNobodyReads(t *testing.T) {
	const burst, atOnce = 2000, 50 // 50,000 a second
	at, far := nstest.New(t, "controller"), nstest.New(t, "switch")
	nstest.Veth(t, at, "e0", far, "e0")
	at.Addr(t, "e0", "fd00::1/64")
	far.Addr(t, "e0", "fd00::2/64")
	ovs := far.NewOVS(t)
	var l net.Listener
	var err error
	at.Do(func() { l, err = Listen(t.Context(), "tcp:[fd00::1]:6653", nil) })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket := ovs.Bridge(t, "s1", "OpenFlow15")
	ovs.Vsctl(t, "set-controller", "s1", "tcp:"+l.Addr().String())
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), nstest.Deadline)
	defer cancel()
	reader := &busyReader{Conn: nc}
	c, err := New(ctx, reader, Config{PacketIns: burst})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Do(ctx, ofp.FlowMod{Match: ofp.Match{ofp.Uint(ofp.EthType, 0x27c0)},
		Instructions: ofp.Apply(ofp.Output{Port: ofp.PortController, MaxLen: ofp.WholePacket})}); err != nil {
		t.Fatal(err)
	}
	other, err := Dial(ctx, "unix:"+socket, nil, Config{}) // who comes by this way is sent nothing unasked
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	frame := append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x27, 0xc0}, make([]byte, 80)...) // as long as a SYN
	out := ofp.PacketOut{InPort: ofp.PortController, Actions: []ofp.Action{ofp.Output{Port: ofp.PortTable}}, Data: frame}
	reader.held.Lock()
	for range burst / atOnce {
		if err == nil {
			err = other.Do(ctx, slices.Repeat([]ofp.Body{out}, atOnce)...)
		}
	}
	reader.held.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ask(ctx, ofp.GetConfigRequest{}); err != nil { // the answer is behind all of them
		t.Fatal(err)
	}
	if n := c.Counts().PacketIns; n != burst {
		t.Errorf("of %d packets that the switch punted while nobody read %d came; look at: rconn_overflow of `ovs-appctl coverage/show`", burst, n)
	}
}
