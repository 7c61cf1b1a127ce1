package ofp

// samples has every message that a controller sends, and some of a switch's.
func samples() []sample {
	flow := FlowMod{Table: 1, Priority: 100, Cookie: 0xc0, Match: toIPv6(Prefix(IPv6Dst, prefix))}
	with := func(change func(*FlowMod)) FlowMod { f := flow; change(&f); return f }
	bucket := func(id BucketID, weight uint16, p Port) Bucket {
		return Bucket{ID: id, Weight: weight, Actions: []Action{SetField{Addr(IPv6Dst, host)}, Output{Port: p}}}
	}
	all := []sample{
		{0, Hello{Versions: Versions(V13, V15)}},
		{0, Error{Kind: ErrorFlowModFailed, Code: 1, Data: make([]byte, 64)}},
		{0, EchoRequest{Data: []byte("12345678")}},
		{0, EchoReply{Data: []byte("12345678")}},
		{0, FeaturesRequest{}},
		{0, FeaturesReply{DatapathID: 0x77, Buffers: 1, Tables: 254, Capabilities: CapFlowStats | CapGroupStats}},
		{0, GetConfigRequest{}},
		{0, GetConfigReply{Config{MissLen: 128}}},
		{0, SetConfig{Config{Flags: 1, MissLen: WholePacket}}},
		{0, BarrierRequest{}},
		{0, BarrierReply{}},
		{0, with(func(f *FlowMod) { f.Instructions = Apply(DecTTL{}, Output{Port: 2}) })},
		{0, with(func(f *FlowMod) {
			f.Command, f.Table, f.CookieMask = FlowDelete, AllTables, ^uint64(0)
			f.OutPort, f.OutGroup, f.Match = Some(Port(3)), Some(GroupID(4)), nil
		})},
		{0, with(func(f *FlowMod) {
			f.IdleTimeout, f.HardTimeout, f.Flags, f.Buffer = 10, 20, FlagSendRemoved|FlagNoBytes, Some(uint32(0))
			f.Instructions = []Instruction{ApplyActions{[]Action{PushVLAN{0x8100}}}, ClearActions{}, WriteActions{[]Action{Group{ID: 7}}},
				WriteMetadata{0x12, 0xff}, GotoTable{2}}
		})},
		{V13, with(func(f *FlowMod) { f.Instructions = []Instruction{MeterInstruction{5}, GotoTable{2}} })},
		{V15, with(func(f *FlowMod) { f.Command, f.Importance = FlowModifyStrict, 9 })},
		{0, GroupMod{Command: GroupAdd, Kind: GroupIndirect, ID: 3, Buckets: []Bucket{{Actions: []Action{Output{Port: 1}}}}}},
		{V13, GroupMod{Command: GroupAdd, Kind: GroupSelect, ID: 9, Buckets: []Bucket{bucket(0, 1, 1), bucket(0, 2, 2)}}},
		{V15, GroupMod{Command: GroupModify, Kind: GroupSelect, ID: 9, Buckets: []Bucket{bucket(0, 100, 1), bucket(1, 0, 2)},
			Selection: &Selection{Method: SelectDPHash}}},
		{V15, GroupMod{Command: GroupAdd, Kind: GroupSelect, ID: 9, Buckets: []Bucket{bucket(0, 1, 1)},
			Selection: &Selection{Method: SelectHash, Param: 7, Fields: []OXM{AllOf(IPv6Src), AllOf(IPProto), AllOf(TCPSrc)}}}},
		{V15, GroupMod{Command: GroupInsertBucket, Kind: GroupSelect, ID: 9, At: Some(BucketLast), Buckets: []Bucket{bucket(4, 5, 3)}}},
		{V15, GroupMod{Command: GroupRemoveBucket, Kind: GroupSelect, ID: 9, At: Some(BucketID(4))}},
		{V13, GroupMod{Command: GroupAdd, Kind: GroupFailover, ID: 5, Buckets: []Bucket{
			{WatchPort: Some(Port(1)), Actions: []Action{Output{Port: 1}}}, {WatchGroup: Some(GroupID(8)), Actions: []Action{Group{ID: 8}}}}}},
		{V15, GroupMod{Command: GroupAdd, Kind: GroupFailover, ID: 5, Buckets: []Bucket{
			{ID: 1, WatchPort: Some(Port(1)), Actions: []Action{Output{Port: 1}}}, {ID: 2, WatchGroup: Some(GroupID(8)), Actions: []Action{Group{ID: 8}}}}}},
		{0, GroupMod{Command: GroupDelete, ID: AllGroups}},
		{0, MeterMod{Command: MeterAdd, Meter: Meter{Flags: MeterPktps | MeterBurst | MeterStats, ID: 2, Bands: []Band{{Kind: BandDrop, Rate: 1000, Burst: 100}}}}},
		{0, MeterMod{Command: MeterModify, Meter: Meter{Flags: MeterKbps, ID: MeterController, Bands: []Band{{Kind: BandRemark, Rate: 5, Precedence: 1}}}}},
		{0, PortMod{Port: 3, HW: mac, Config: ConfigDown, Mask: ConfigDown}},
		{0, PacketOut{InPort: PortController, Actions: []Action{Output{Port: 2}}, Data: frame}},
		{V15, PacketOut{InPort: 1, Extra: Match{Uint(Metadata, 3)}, Actions: []Action{Output{Port: PortTable}}, Data: frame}},
		{0, PacketIn{TotalLen: uint16(len(frame)), Reason: ReasonAction, Table: 2, Cookie: 5, Match: Match{Uint(InPort, 1), Uint(Metadata, 2)}, Data: frame}},
		{0, FlowRemoved{Cookie: 1, Table: 2, Priority: 3, Reason: RemovedHard, IdleTimeout: 4, HardTimeout: 5, Match: toIPv6(),
			Stats: FlowCounts{Duration{1, 5e8}, 6, 700}}},
		{0, PortStatus{Reason: PortModified, Port: PortDesc{Number: 3, HW: mac, Name: "eth3", State: StateLinkDown, Ether: Ethernet{Current: 1 << 6, Speed: 1e7, MaxSpeed: 1e7}}}},
		{0, RoleRequest{RoleState{Role: RolePrimary, Generation: 3}}},
		{0, RoleReply{RoleState{Role: RoleSecondary, Generation: 3}}},
		{0, RoleStatus{Role: RoleSecondary, Reason: RoleTaken, Generation: 4}},
		{0, GetAsyncRequest{}},
		{0, SetAsync{Async{PacketIn: AsyncMask{3, 0}, PortStatus: AsyncMask{7, 7}, FlowRemoved: AsyncMask{15, 0}}}},
		{0, BundleControl{ID: 6, Kind: BundleCommit, Flags: BundleAtomic | BundleOrdered}},
		{V13, BundleAdd{ID: 6, Flags: BundleAtomic, Message: Message{V13, xid, flow}}},
		{V15, BundleAdd{ID: 6, Flags: BundleAtomic, Message: Message{V15, xid, flow}}},
	}
	return append(all, questions()...)
}

// xid is that of all samples: what is in a bundle has the number of what puts it there.
const xid = 7

// frame is an Ethernet frame that says nothing.
var frame = append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x27, 0xc0}, make([]byte, 46)...)

// questions are the multipart messages.
func questions() []sample {
	ask := func(v Version, a Ask) sample { return sample{v, MultipartRequest{Ask: a}} }
	return []sample{
		ask(0, AskDesc{}), ask(0, AskTableStats{}), ask(0, AskGroupFeatures{}), ask(0, AskMeterFeatures{}),
		ask(V15, AskTables{}), ask(0, AskPorts{}), ask(V15, AskPorts{Some(Port(3))}), ask(0, AskPortStats{}),
		ask(0, AskPortStats{Some(Port(2))}), ask(0, AskGroups{}), ask(V15, AskGroups{Some(GroupID(4))}),
		ask(0, AskGroupStats{}), ask(0, AskMeters{}), ask(0, AskMeterStats{Some(MeterID(3))}),
		ask(0, AskFlows{FlowFilter{Table: AllTables, Cookie: 0xc0, CookieMask: 0xff}}),
		ask(0, AskAggregate{FlowFilter{Table: 3, OutPort: Some(Port(1)), Match: toIPv6()}}),
	}
}
