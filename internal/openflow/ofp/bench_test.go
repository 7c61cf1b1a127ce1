package ofp

import "testing"

func BenchmarkAppendFlowMod(b *testing.B) {
	m := Message{V15, 1, FlowMod{Match: toIPv6(Prefix(IPv6Dst, prefix)), Instructions: Apply(DecTTL{}, Output{Port: 2})}}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = m.Append(buf[:0])
	}
}

func BenchmarkParsePacketIn(b *testing.B) {
	in, err := Message{V15, 1, PacketIn{Reason: ReasonAction, Match: Match{Uint(InPort, 1), Uint(Metadata, 2)}, Data: frame}}.Append(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(in); err != nil {
			b.Fatal(err)
		}
	}
}
