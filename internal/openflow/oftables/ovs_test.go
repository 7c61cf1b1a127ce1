package oftables

import (
	"net/netip"
	"slices"
	"testing"

	"scaffold.dev/scaffold/internal/openflow/ofconn"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// A real is a connection with a real Open vSwitch.
type real struct {
	*ofconn.Conn
	ovs *nstest.OVS
}

func dial(t testing.TB, ovs *nstest.OVS, socket string) real {
	t.Helper()
	c, err := ofconn.Dial(t.Context(), "unix:"+socket, nil, ofconn.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return real{c, ovs}
}

// tell tells the switch all that the tables have to say.
func (r real) tell(t testing.TB, bodies []ofp.Body) {
	t.Helper()
	before, bundle, after := Split(bodies)
	if err := r.Do(t.Context(), before...); err != nil {
		t.Fatal(err)
	}
	if err := r.Bundle(t.Context(), bundle...); err != nil {
		t.Fatal(err)
	}
	if err := r.Do(t.Context(), after...); err != nil {
		t.Fatal(err)
	}
}

// read is all that the switch has.
func (r real) read(t testing.TB) (flows []ofp.Flow, groups []ofp.GroupDesc, meters []ofp.Meter) {
	t.Helper()
	for _, ask := range []ofp.Ask{ofp.AskFlows{FlowFilter: ofp.FlowFilter{Table: ofp.AllTables}}, ofp.AskGroups{}, ofp.AskMeters{}} {
		parts, err := r.Collect(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			switch p := p.(type) {
			case ofp.Flows:
				flows = append(flows, p...)
			case ofp.Groups:
				groups = append(groups, p...)
			case ofp.Meters:
				meters = append(meters, p...)
			}
		}
	}
	return flows, groups, meters
}

// holds fails where the switch does not have what it was told, or would be told more.
func (r real) holds(t testing.TB, tables *Tables) {
	t.Helper()
	flows, groups, meters := r.read(t)
	for _, d := range tables.Verify(flows, groups, meters) {
		t.Error(d)
	}
	tables.Learn(flows, groups, meters)
	if more := tables.Drain(); len(more) > 0 {
		t.Errorf("after reading back the switch would be told %d things more, the first %+v", len(more), more[0])
	}
}

var protocols = map[ofp.Version]string{ofp.V13: "OpenFlow13", ofp.V15: "OpenFlow15"}

// TestOpenVSwitchHoldsWhatItIsTold: every kind of switch's tables are accepted, read back equal, and removed
// without a trace, beside an entry, a group and a meter of somebody else.
func TestOpenVSwitchHoldsWhatItIsTold(t *testing.T) {
	ovs := nstest.New(t, "switch").NewOVS(t)
	n := 0
	for name, o := range kinds {
		t.Run(name, func(t *testing.T) {
			n++
			r := dial(t, ovs, ovs.Bridge(t, "s"+string(rune('0'+n)), protocols[o.Version]))
			others := []ofp.Body{
				ofp.FlowMod{Priority: 0x9000, Cookie: 7, Match: ofp.Match{ofp.Uint(ofp.InPort, 1)}, Instructions: ofp.Apply(ofp.Output{Port: ofp.PortNormal})},
				ofp.GroupMod{ID: 5, Buckets: []ofp.Bucket{{Actions: []ofp.Action{ofp.Output{Port: 1}}}}},
				meter{9}.mod(ofp.MeterAdd, 5),
			}
			r.tell(t, others)
			tables := demo(o)
			tables.Own(16, modules(o))
			r.tell(t, tables.Drain())
			r.holds(t, tables)
			r.tell(t, tables.Removal())
			flows, groups, meters := r.read(t)
			if len(flows) != 1 || len(groups) != 1 || len(meters) != 1 {
				t.Errorf("%d flows, %d groups and %d meters are left, want one of each", len(flows), len(groups), len(meters))
			}
			if !slices.ContainsFunc(flows, func(f ofp.Flow) bool { return f.Cookie == 7 }) {
				t.Error("somebody else's flow is gone")
			}
		})
	}
}

// modules are entries as modules may have them: what a switch reads back is in its own words.
func modules(o Options) []Flow {
	tcp := ofp.Match{ofp.Uint(ofp.TCPDst, 80), ofp.UintMasked(ofp.IPProto, 6, 0xff), ipv6, ofp.UintMasked(ofp.TCPFlags, 2, 0x17)}
	matches := []ofp.Match{
		nil,
		tcp,
		{ofp.Uint(ofp.EthType, 0x88cc)},
		{ofp.Bytes(ofp.EthDst, []byte{1, 0, 0, 0, 0, 0}, []byte{1, 0, 0, 0, 0, 0})},
		{ofp.Uint(ofp.VLANVID, ofp.VLANPresent|10)},
		{ofp.UintMasked(ofp.VLANVID, ofp.VLANPresent, ofp.VLANPresent)},
		{ipv6, proto(sid.ICMPv6), ofp.Uint(ofp.ICMPv6Type, 135), ofp.Addr(ofp.NDTarget, ownHere.Host())},
		{ofp.Uint(ofp.EthType, 0x806), ofp.Uint(ofp.ARPOp, 1), ofp.Addr(ofp.ARPTPA, netip.MustParseAddr("10.0.0.1"))},
		{ofp.UintMasked(ofp.Metadata, 5, 0xff), ofp.Uint(ofp.InPort, 3)},
		{ofp.Uint(ofp.TunnelID, 7)},
	}
	if o.Extensions {
		matches = append(matches, ofp.Match{ofp.UintMasked(ofp.Reg(2), 5, 0xff), ofp.Uint(ofp.Reg(3), 1), ofp.Uint(ofp.Reg(5), 1)},
			ofp.Match{ofp.Uint(ofp.PacketReg(3), 9)}, ofp.Match{ipv6, ofp.Uint(ofp.IPTTL, 9)})
	}
	var flows []Flow
	for i, m := range matches {
		flows = append(flows, Flow{ID: uint32(i), Table: 64, Priority: uint16(i), Match: m, Instructions: []ofp.Instruction{
			ofp.ApplyActions{Actions: []ofp.Action{ofp.PushVLAN{EtherType: 0x8100}, ofp.SetField{OXM: ofp.Uint(ofp.VLANVID, ofp.VLANPresent|9)}, ofp.Output{Port: 2}}},
			ofp.WriteActions{Actions: []ofp.Action{ofp.Output{Port: 3}}}, ofp.WriteMetadata{Metadata: 5, Mask: 0xff}, ofp.GotoTable{Table: 65}}},
			Flow{ID: uint32(i), Priority: uint16(i), First: i%2 == 0, Match: m, Punt: true, Copy: i == 1 && o.Extensions, Rate: uint32(i)})
	}
	return flows
}
