package ofconn

import (
	"bytes"
	"testing"

	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestOpenVSwitchPuntsAndSends: a packet goes out by PacketOut, through a flow, and comes back.
func TestOpenVSwitchPuntsAndSends(t *testing.T) {
	ovs := nstest.New(t, "switch").NewOVS(t)
	frame := append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x27, 0xc0}, make([]byte, 46)...)
	for _, protocols := range []string{"OpenFlow13", "OpenFlow15"} {
		c := dial(t, ovs.Bridge(t, protocols, protocols))
		punt := ofp.FlowMod{Cookie: 0xc0ffee, Flags: ofp.FlagSendRemoved, Match: ofp.Match{ofp.Uint(ofp.EthType, 0x27c0)},
			Instructions: ofp.Apply(ofp.Output{Port: ofp.PortController, MaxLen: ofp.WholePacket})}
		out := ofp.PacketOut{InPort: ofp.PortController, Actions: []ofp.Action{ofp.Output{Port: ofp.PortTable}}, Data: frame}
		if err := c.Do(t.Context(), punt, out); err != nil {
			t.Fatalf("%s: %v", protocols, err)
		}
		p := nstest.Receive(t, "Conn.Err", c.PacketIns())
		if p.Cookie != 0xc0ffee || p.InPort() != ofp.PortController || !bytes.Equal(p.Data, frame) {
			t.Errorf("%s: %+v came, want our frame", protocols, p)
		}
		punt.Command, punt.CookieMask = ofp.FlowDelete, ^uint64(0)
		if err := c.Do(t.Context(), punt); err != nil {
			t.Fatalf("%s: %v", protocols, err)
		}
		removed, ok := nstest.Receive(t, "Conn.Err", c.Events()).Body.(ofp.FlowRemoved)
		if !ok || removed.Reason != ofp.RemovedDeleted || removed.Cookie != 0xc0ffee || removed.Stats.Packets != 1 {
			t.Errorf("%s: %+v, want the end of a flow that saw one packet", protocols, removed)
		}
	}
}
