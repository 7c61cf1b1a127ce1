package ofp

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return b
}

func TestParseRefuses(t *testing.T) {
	const flow = "040e%s 00000001" + "0000000000000000 0000000000000000 0000 0000 0000 0000 ffffffff ffffffff ffffffff 00000000"
	with := func(length, rest string) string { return strings.Replace(flow, "%s", length, 1) + rest }
	for _, c := range []struct {
		name, hex string
		want      error
		says      string
	}{
		{"nothing", "", ErrLength, ""},
		{"half a header", "040e0008", ErrLength, ""},
		{"a length shorter than a header", "04000004 00000001", ErrLength, ""},
		{"a length beyond the end", "04000010 00000001", ErrLength, ""},
		{"bytes behind the end", "04020008 00000001 00", ErrLength, "1 bytes follow"},
		{"1.0", "010e0008 00000001", ErrVersion, "OpenFlow 1.0"},
		{"1.4", "05020008 00000001", ErrVersion, "OpenFlow 1.4"},
		{"version 0", "00000008 00000001", ErrVersion, ""},
		{"a type of no version", "06630008 00000001", ErrValue, ""},
		{"a type of 1.5 in 1.3", "04210010 00000001 0000000100000000", ErrValue, "BUNDLE_CONTROL"},
		{"a flow-mod cut off", "040e0010 00000001 0000000000000000", ErrLength, "FLOW_MOD: at byte 16"},
		{"a match of 1.0", with("0038", "00000004 00000000"), ErrValue, "match of type 0"},
		{"a match that begins and ends nowhere", with("0038", "0001ffff 00000000"), ErrLength, "FLOW_MOD: at byte 48"},
		{"a field longer than its match", with("0038", "00010008 80000a08"), ErrLength, ""},
		{"an EtherType of 4 bytes", with("0040", "0001000c 80000a04 00000000 00000000"), ErrLength, "eth_type"},
		{"a mask of half a byte", with("0040", "00010009 80000b01 00 00000000000000"), ErrLength, ""},
		{"a field of no bytes", with("0038", "00010008 80000a00"), ErrLength, "0 bytes"},
		{"an instruction of 4 bytes", with("003c", "00010004 00000000 00010004"), ErrLength, ""},
		{"an instruction of no bytes", with("0040", "00010004 00000000 00010000 00000000"), ErrLength, ""},
		{"an action of 12 bytes", with("0050", "00010004 00000000 00040018 00000000 0000000c 00000001 ffff0000 00000000"), ErrLength, "multiple of 8"},
		{"an output with 8 bytes more", with("0058", "00010004 00000000 00040020 00000000 00000018 00000001 ffff0000 00000000 0000000000000000"), ErrLength, "more than belong"},
		{"a bucket of 3 bytes", "040f0018 00000001 0000 01 00 00000001 00030000 00000000", ErrLength, "GROUP_MOD"},
		{"buckets beyond the end", "060f0018 00000001 0000 01 00 00000001 00100000 ffffffff", ErrLength, "GROUP_MOD"},
		{"a bundle in a bundle", "0622 0020 00000001 00000001 0000 0000 0622 0010 00000001 00000001 0000 0000", ErrValue, "a bundle in a bundle"},
		{"a multipart without kind", "04130008 00000001", ErrLength, "MULTIPART_REPLY"},
		{"an experimenter without one", "04040008 00000001", ErrLength, "EXPERIMENTER"},
	} {
		m, err := Parse(unhex(t, c.hex))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: Parse = %+v, %v; want an error of %q that says %q", c.name, m, err, c.want, c.says)
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	buckets := make([]Bucket, 2100)
	for i := range buckets {
		buckets[i] = Bucket{ID: BucketID(i), Actions: []Action{Output{Port: 1}, Group{ID: 1}}}
	}
	for _, c := range []struct {
		name    string
		version Version
		body    Body
		want    error
		says    string
	}{
		{"how a group selects, in 1.3", V13, GroupMod{Kind: GroupSelect, Selection: &Selection{}}, ErrUnsayable, "needs OpenFlow 1.5"},
		{"a bucket's number, in 1.3", V13, GroupMod{Buckets: []Bucket{{ID: 1}}}, ErrUnsayable, "bucket's number"},
		{"one bucket more, in 1.3", V13, GroupMod{Command: GroupInsertBucket}, ErrUnsayable, "some of a group's buckets"},
		{"a masked set-field, in 1.3", V13, FlowMod{Instructions: Apply(SetField{UintMasked(Reg(0), 1, 1)})}, ErrUnsayable, "set-field"},
		{"the meter action, in 1.3", V13, FlowMod{Instructions: Apply(MeterAction{1})}, ErrUnsayable, "MeterAction"},
		{"the meter instruction, in 1.5", V15, FlowMod{Instructions: []Instruction{MeterInstruction{1}}}, ErrUnsayable, "MeterInstruction"},
		{"an importance, in 1.3", V13, FlowMod{Importance: 1}, ErrUnsayable, "importance"},
		{"tables' descriptions, in 1.3", V13, MultipartRequest{Ask: AskTables{}}, ErrUnsayable, ""},
		{"one port, in 1.3", V13, MultipartRequest{Ask: AskPorts{Some(Port(1))}}, ErrUnsayable, ""},
		{"an action that is nil", V13, FlowMod{Instructions: Apply(nil)}, ErrUnsayable, "nil"},
		{"an instruction that is nil", V13, FlowMod{Instructions: []Instruction{nil}}, ErrUnsayable, "nil"},
		{"a question that is nil", V13, MultipartRequest{}, ErrUnsayable, ""},
		{"no body", V13, nil, ErrUnsayable, "nil"},
		{"1.4", 5, BarrierRequest{}, ErrVersion, ""},
		{"a group of 2100 buckets", V15, GroupMod{Buckets: buckets}, ErrLength, "GROUP_MOD"},
		{"a packet of 64 KiB", V15, PacketOut{Data: make([]byte, 1<<16)}, ErrLength, "PACKET_OUT"},
		{"a method of 16 letters", V15, GroupMod{Selection: &Selection{Method: "sixteen_letters_"}}, ErrLength, ""},
		{"a field without a value", V15, FlowMod{Match: Match{{Field: EthType}}}, ErrLength, "eth_type"},
	} {
		b, err := Message{c.version, 1, c.body}.Append([]byte("before"))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want an error of %q that says %q", c.name, err, c.want, c.says)
		}
		if string(b) != "before" {
			t.Errorf("%s: %q is left in the buffer, want what was there", c.name, b)
		}
	}
}

func TestErrorsSayWhatWasRefused(t *testing.T) {
	refused, _ := Message{V13, 42, FlowMod{}}.Append(nil)
	e := Error{Kind: ErrorFlowModFailed, Code: 1, Data: refused}
	if want := "switch refuses FLOW_MOD (xid 42): OFPFMFC_TABLE_FULL"; e.Error() != want {
		t.Errorf("%q, want %q", e.Error(), want)
	}
	if !errors.Is(e, Refusal("OFPFMFC_TABLE_FULL")) || errors.Is(e, Refusal("OFPFMFC_EPERM")) {
		t.Errorf("errors.Is does not tell %v from others", e)
	}
	hello := Error{Kind: ErrorHelloFailed, Data: []byte("we speak 1.0")}
	if want := `switch refuses: OFPHFC_INCOMPATIBLE: "we speak 1.0"`; hello.Error() != want {
		t.Errorf("%q, want %q", hello.Error(), want)
	}
	bundle := Refusal("OFPBFC_MSG_FAILED")
	b, _ := Message{V13, 1, bundle}.Append(nil)
	if m, err := Parse(b); err != nil || !errors.Is(m.Body.(Error), bundle) || len(b) != 16 {
		t.Errorf("the bundle error of 1.3 is %+v, %v (%x)", m, err, b)
	}
}

func TestNegotiate(t *testing.T) {
	ours := Versions(V13, V15)
	for _, c := range []struct {
		name, hex string
		want      Version
		ok        bool
	}{
		{"Open vSwitch with all versions", "06000010 00000001 00010008 0000007e", V15, true},
		{"1.3 alone, by bitmap", "04000010 00000001 00010008 00000010", V13, true},
		{"1.0 and 1.3 of a bitmap", "04000010 00000001 00010008 00000012", V13, true},
		{"1.4 alone, by bitmap", "05000010 00000001 00010008 00000020", 0, false},
		{"1.3 without bitmap", "04000008 00000001", V13, true},
		{"1.0 without bitmap", "01000008 00000001", 0, false},
		{"one of the future", "09000010 00000001 00010008 00000250", V15, true},
		{"one of the future without bitmap", "09000008 00000001", V15, true},
		{"an element that is not known, unpadded", "04000018 00000001 00070006 1234 0000 00010008 00000010", V13, true},
		{"a bitmap that is cut off", "0400000e 00000001 00010008 0000", V13, true},
		{"no HELLO", "04020008 00000001", 0, false},
	} {
		m, err := Parse(unhex(t, c.hex))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if v, ok := Negotiate(ours, m); v != c.want || ok != c.ok {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, v, ok, c.want, c.ok)
		}
	}
}
