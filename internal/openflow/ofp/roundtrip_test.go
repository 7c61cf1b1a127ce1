package ofp

import (
	"errors"
	"net/netip"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

func TestParseUndoesAppend(t *testing.T) {
	for _, m := range sampleMessages() {
		undone(t, m)
	}
	for _, f := range fields {
		for _, v := range versions(0) {
			undone(t, Message{v, xid, FlowMod{Match: f.match}})
		}
	}
	for _, s := range steps {
		for _, v := range versions(s.version) {
			undone(t, Message{v, xid, PacketOut{Actions: []Action{s.action, s.action}, Data: frame}})
		}
	}
	rapid.Check(t, func(t *rapid.T) { undone(t, anyMessage(t)) })
}

// undone holds Parse to what Append was given; before stands for what the caller's buffer has already.
func undone(t rapid.TB, m Message) {
	t.Helper()
	b, err := m.Append([]byte("before"))
	if err != nil {
		t.Fatalf("Append(%+v): %v", m, err)
	}
	got, err := Parse(b[len("before"):])
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Fatalf("Parse(Append(%+v)) = %+v, %v", m, got, err)
	}
	if h, err := ParseHeader(b[len("before"):]); err != nil || h.Len != len(b)-len("before") || h.XID != m.XID {
		t.Fatalf("ParseHeader(Append(%+v)) = %+v, %v; it has %d bytes", m, h, err, len(b)-len("before"))
	}
}

func anyMessage(t *rapid.T) Message {
	v := rapid.SampledFrom([]Version{V13, V15}).Draw(t, "version")
	bodies := []Body{anyFlowMod(t, v), anyGroupMod(t, v), anyMeterMod(t), anyPacketOut(t, v),
		MultipartReply{More: rapid.Bool().Draw(t, "more"), Part: anyPart(t, v)}}
	return Message{v, rapid.Uint32().Draw(t, "xid"), rapid.SampledFrom(bodies).Draw(t, "body")}
}

func anyOpt[T ~uint32](t *rapid.T, what string) Opt[T] {
	if rapid.Bool().Draw(t, what+"?") {
		return Some(T(rapid.Uint32Max(0xffffff00).Draw(t, what)))
	}
	return Opt[T]{}
}

func anyFlowMod(t *rapid.T, v Version) FlowMod {
	return FlowMod{Command: FlowCommand(rapid.Uint8Max(4).Draw(t, "command")), Cookie: rapid.Uint64().Draw(t, "cookie"),
		Table: rapid.Byte().Draw(t, "table"), Priority: rapid.Uint16().Draw(t, "priority"),
		Buffer: anyOpt[uint32](t, "buffer"), OutPort: anyOpt[Port](t, "port"), OutGroup: anyOpt[GroupID](t, "group"),
		Flags: FlowFlags(rapid.Uint16().Draw(t, "flags")), Match: anyMatch(t), Instructions: anyInstructions(t, v)}
}

func anyMatch(t *rapid.T) (m Match) {
	for range rapid.IntRange(0, 5).Draw(t, "fields") {
		f := rapid.SampledFrom([]Field{InPort, EthDst, EthType, IPv6Dst, Metadata, TCPFlags, Reg(3), PacketReg(1),
			ExperimentalField(0xabc, 3, 5), ActSetOut, TunIPv6Src}).Draw(t, "field")
		value := rapid.SliceOfN(rapid.Byte(), f.Size(), f.Size())
		if rapid.Bool().Draw(t, "masked") {
			m = append(m, Bytes(f, value.Draw(t, "value"), value.Draw(t, "mask")))
		} else {
			m = append(m, Bytes(f, value.Draw(t, "value"), nil))
		}
	}
	return m
}

func anyActions(t *rapid.T, v Version) (as []Action) {
	for range rapid.IntRange(0, 4).Draw(t, "actions") {
		a := rapid.SampledFrom(steps).Draw(t, "action")
		if a.version == 0 || a.version == v {
			as = append(as, a.action)
		}
	}
	if rapid.Bool().Draw(t, "other?") {
		n := 8*rapid.IntRange(1, 3).Draw(t, "size") - 4
		as = append(as, OtherAction{Kind: rapid.Uint16Range(100, 0xffff).Draw(t, "kind"),
			Data: rapid.SliceOfN(rapid.ByteMin(1), n, n).Draw(t, "data")})
	}
	return as
}

func anyInstructions(t *rapid.T, v Version) (is []Instruction) {
	all := []Instruction{GotoTable{3}, WriteMetadata{1, 2}, ClearActions{}, WriteActions{anyActions(t, v)},
		ApplyActions{anyActions(t, v)}, OtherInstruction{Kind: 99, Data: make([]byte, 12)}}
	if v < V15 {
		all = append(all, MeterInstruction{ID: 4})
	}
	for range rapid.IntRange(0, 4).Draw(t, "instructions") {
		is = append(is, rapid.SampledFrom(all).Draw(t, "instruction"))
	}
	return is
}

func anyBuckets(t *rapid.T, v Version) (bs []Bucket) {
	for range rapid.IntRange(0, 4).Draw(t, "buckets") {
		b := Bucket{Weight: rapid.Uint16().Draw(t, "weight"), WatchPort: anyOpt[Port](t, "watch port"),
			WatchGroup: anyOpt[GroupID](t, "watch group"), Actions: anyActions(t, v)}
		if v >= V15 {
			b.ID = BucketID(rapid.Uint32().Draw(t, "bucket"))
		}
		bs = append(bs, b)
	}
	return bs
}

func anySelection(t *rapid.T, v Version) *Selection {
	if v < V15 || rapid.Bool().Draw(t, "selection") {
		return nil
	}
	s := &Selection{Method: rapid.StringMatching(`[a-z_]{1,15}`).Draw(t, "method"), Param: rapid.Uint64().Draw(t, "param")}
	for _, f := range []Field{IPv6Src, TCPDst, IPProto, EthSrc}[rapid.IntRange(0, 4).Draw(t, "field"):] {
		s.Fields = append(s.Fields, AllOf(f))
	}
	return s
}

func anyGroupMod(t *rapid.T, v Version) GroupMod {
	return GroupMod{Command: GroupCommand(rapid.Uint16Max(2).Draw(t, "command")), Kind: GroupType(rapid.Uint8Max(3).Draw(t, "type")),
		ID: GroupID(rapid.Uint32().Draw(t, "group")), Buckets: anyBuckets(t, v), Selection: anySelection(t, v)}
}

func anyMeterMod(t *rapid.T) MeterMod {
	return MeterMod{Command: MeterModify, Meter: Meter{ID: MeterID(rapid.Uint32().Draw(t, "meter")), Flags: MeterPktps,
		Bands: []Band{{Kind: BandDrop, Rate: rapid.Uint32().Draw(t, "rate")}, {Kind: BandRemark, Precedence: 2},
			{Kind: BandExperimenter, ID: 5, Data: []byte("12345678")}}}}
}

func anyPacketOut(t *rapid.T, v Version) PacketOut {
	m := PacketOut{Buffer: anyOpt[uint32](t, "buffer"), InPort: Port(rapid.Uint32().Draw(t, "port")), Actions: anyActions(t, v)}
	if data := rapid.SliceOf(rapid.Byte()).Draw(t, "packet"); len(data) > 0 {
		m.Data = data
	}
	return m
}

func anyPart(t *rapid.T, v Version) Part {
	n := rapid.Uint64().Draw(t, "counter")
	d := Duration{rapid.Uint32().Draw(t, "seconds"), 5}
	return rapid.SampledFrom([]Part{
		Desc{"Nicira, Inc.", "Open vSwitch", "3.1.0", "None", "s1"},
		Flows{{Table: 3, Stats: FlowCounts{d, n, n + 1}, Match: anyMatch(t), Instructions: anyInstructions(t, v)}, {Cookie: n}},
		Aggregate{n, n + 1, 3}, TablesStats{{1, 2, n, n}, {Table: 2}},
		Ports{{Number: 1, HW: mac, Name: "sixteen letters.", State: StateLive, Ether: Ethernet{Current: 5}}, {Number: PortLocal}},
		PortsStats{{Port: 3, Duration: d, RxBytes: n, Ether: EthernetStats{Collisions: n}}, {Port: 4}},
		Groups{{Kind: GroupSelect, ID: 4, Buckets: anyBuckets(t, v), Selection: anySelection(t, v)}, {ID: 5}},
		GroupsStats{{ID: 4, References: 1, Packets: n, Duration: d, Buckets: []Counts{{n, n}, {1, 2}}}, {ID: 5}},
		GroupFeatures{Types: 15, Max: [4]uint32{1, 2, 3, 4}, Actions: [4]uint32{5, 6, 7, 8}},
		Meters{{Flags: MeterKbps, ID: 3, Bands: []Band{{Kind: BandDrop, Rate: 3}}}, {ID: 4}},
		MetersStats{{ID: 3, References: 2, Packets: n, Bands: []Counts{{n, 1}}}}, MeterFeatures{Max: 8, Bands: 2, MaxBands: 1},
		OtherMultipart{Of: 77, Data: []byte("something")},
	}).Draw(t, "part")
}

// FuzzParse holds Parse to never panic, and to read again what it read.
func FuzzParse(f *testing.F) {
	for _, m := range sampleMessages() {
		b, _ := m.Append(nil)
		f.Add(b)
	}
	for _, r := range recordings(f) {
		f.Add(r.bytes)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		m, err := Parse(in)
		if err != nil {
			return
		}
		out, err := m.Append(nil)
		if errors.Is(err, ErrLength) && len(in) > 1<<14 { // what was left out in 64 KiB is said now
			return
		}
		again, err2 := Parse(out)
		if err != nil || err2 != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("%x: %+v (%v) became %x: %+v (%v)", in, m, err, out, again, err2)
		}
	})
}

func TestValuesOfFields(t *testing.T) {
	p := netip.MustParsePrefix("fd5d::1:2/64")
	for _, c := range []struct {
		oxm  OXM
		want string
		text string
	}{
		{Prefix(IPv6Dst, p), "fd5d::/64", "ipv6_dst=fd5d::/64"},
		{Addr(IPv6Dst, p.Addr()), "fd5d::1:2/128", "ipv6_dst=fd5d::1:2"},
		{Prefix(IPv4Src, netip.MustParsePrefix("10.1.2.3/9")), "10.0.0.0/9", "ip_src=10.0.0.0/9"},
		{Prefix(IPv6Dst, netip.PrefixFrom(p.Addr(), 128)), "fd5d::1:2/128", "ipv6_dst=fd5d::1:2"},
		{UintMasked(IPv4Src, 0x0a000001, 0xff0000ff), "invalid Prefix", "ip_src=10.0.0.1/255.0.0.255"},
		{Uint(ExperimentalField(1, 2, 12), 9), "invalid Prefix", "oxm_0xffff_0x1_2=0x9"},
	} {
		if got := c.oxm.Prefix().String(); got != c.want {
			t.Errorf("%v: prefix %s, want %s", c.oxm, got, c.want)
		}
		if got := c.oxm.String(); got != c.text {
			t.Errorf("shown as %s, want %s", got, c.text)
		}
	}
	if o := UintMasked(Reg(2), 0xffff, 0xff); o.Uint() != 0xff || len(o.Mask()) != 4 || len(o.Value()) != 4 {
		t.Errorf("%v: the bits outside of the mask stayed", o)
	}
	if o := HW(EthSrc, mac); o.HW() != mac || o != HW(EthSrc, mac) {
		t.Errorf("%v: want %v", o, mac)
	}
}
