package wire

import (
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/sid"
)

// golden fixes the bytes of docs/protocol.md §4: a change here is a change of the protocol.
var golden = []struct {
	message Message
	hex     string
}{
	{Hello{Header: Header{Nonce: 7}, Service: true, Relay: true, RelayPort: 23728, Locator: 0xfd5d000000010100, Name: "r1", Port: "eth0"},
		"01010026 00000000 0000000000000007 03020400 5cb00000 fd5d000000010100 7231 65746830"},
	{Solicit{Header: Header{Nonce: 1}, Name: "h1"}, "01020016 00000000 0000000000000001 02000000 6831"},
	{Probe{Header{KeyID: 3, Nonce: 0x0102030405060708}}, "01030010 00000003 0102030405060708"},
	{ProbeAck{Header{KeyID: 3, Nonce: 0x0102030405060708}}, "01040010 00000003 0102030405060708"},
	{Fail{Reason: HostGone, Quote: make([]byte, MinQuote)}, "01050044 00000000 0000000000000000 04000000" + strings.Repeat("00", MinQuote)},
	{Bound{Socket: 0x8000000000000001}, "01060018 00000000 0000000000000000 8000000000000001"},
	{Link{Header: Header{KeyID: 5, Nonce: 7}, Serial: 2, Echo: 3, Locator: 0xfd5d000000010100, Name: "r1", Port: "e0", Peer: "r2", PeerPort: "p",
		Proof: [ProofLen]byte{1, 15: 2}},
		"010c0043 00000005 0000000000000007 02020201 0000000000000002 0000000000000003 fd5d000000010100 7231 6530 7232 70 01" + strings.Repeat("00", 14) + "02"},
}

func TestGolden(t *testing.T) {
	for _, g := range golden {
		want := strings.ReplaceAll(g.hex, " ", "")
		if got := hex.EncodeToString(g.message.Append(nil)); got != want {
			t.Errorf("%v:\n got %s\nwant %s", g.message.Type(), got, want)
		}
	}
}

func TestParseUndoesAppend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMessage(t)
		got, err := Parse(m.Append([]byte("before"))[len("before"):])
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("Parse(Append(%#v)) = %#v, %v", m, got, err)
		}
	})
}

func anyMessage(t *rapid.T) Message {
	h := Header{KeyID: rapid.Uint32().Draw(t, "key"), Nonce: rapid.Uint64().Draw(t, "nonce")}
	name := rapid.StringN(0, -1, MaxName)
	switch rapid.SampledFrom([]Type{1, 2, 3, 4, 5, 6, TypeLink}).Draw(t, "type") {
	case TypeLink:
		m := Link{Header: h, Serial: rapid.Uint64().Draw(t, "serial"), Echo: rapid.Uint64().Draw(t, "echo"), Locator: sid.Locator(rapid.Uint64().Draw(t, "locator")),
			Name: name.Draw(t, "name"), Port: name.Draw(t, "port"), Peer: name.Draw(t, "peer"), PeerPort: name.Draw(t, "peer port")}
		copy(m.Proof[:], rapid.SliceOfN(rapid.Byte(), ProofLen, ProofLen).Draw(t, "proof"))
		return m
	case TypeHello:
		return Hello{h, rapid.Bool().Draw(t, "service"), rapid.Bool().Draw(t, "relay"), rapid.Uint16().Draw(t, "relay port"),
			sid.Locator(rapid.Uint64().Draw(t, "locator")), name.Draw(t, "name"), name.Draw(t, "port")}
	case TypeSolicit:
		return Solicit{h, name.Draw(t, "name")}
	case TypeProbe:
		return Probe{h}
	case TypeProbeAck:
		return ProbeAck{h}
	case TypeFail:
		quote := rapid.SliceOfN(rapid.Byte(), MinQuote, MaxQuote).Draw(t, "quote")
		return Fail{h, Reason(rapid.Byte().Draw(t, "reason")), quote}
	}
	return Bound{h, sid.NewSocketID(rapid.Uint64().Draw(t, "socket"))}
}

func TestParseRefuses(t *testing.T) {
	probe := Probe{}.Append(nil)
	with := func(i int, v byte) []byte {
		b := append([]byte(nil), probe...)
		b[i] = v
		return b
	}
	cases := []struct {
		name string
		in   []byte
		want error
	}{
		{"nothing", nil, ErrLength},
		{"half a header", probe[:8], ErrLength},
		{"another version", with(0, 2), ErrVersion},
		{"an unknown type", with(1, 99), ErrType},
		{"type 0", with(1, 0), ErrType},
		{"bytes behind the end", append(with(0, 1), 0), ErrLength},
		{"a body that has to be empty", append(with(3, 17), 0), ErrLength},
		{"a HELLO without body", with(1, byte(TypeHello)), ErrLength},
		{"a SOLICIT without body", with(1, byte(TypeSolicit)), ErrLength},
		{"a LINK without body", with(1, byte(TypeLink)), ErrLength},
		{"a LINK without proof", Link{Name: "r1", Peer: "r2"}.Proven(nil), ErrLength},
		{"a FAIL without quote", with(1, byte(TypeFail)), ErrLength},
		{"a BOUND without socketID", with(1, byte(TypeBound)), ErrLength},
	}
	for _, c := range cases {
		if m, err := Parse(c.in); !errors.Is(err, c.want) {
			t.Errorf("%s: Parse = %v, %v; want an error of %q", c.name, m, err, c.want)
		}
	}
	if _, err := Parse(Bound{Socket: 1}.Append(nil)); err == nil {
		t.Error("a BOUND with a suffix for a socketID was taken")
	}
}

func TestProbesAreMadeAndReadWithoutAllocation(t *testing.T) {
	buf := make([]byte, 0, HeaderLen)
	n := testing.AllocsPerRun(100, func() {
		b := Probe{Header{Nonce: 9}}.Append(buf)
		if _, h, err := ParseHeader(b); err != nil || h.Nonce != 9 {
			t.Fatal(h, err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations a probe, want none", n)
	}
}

func FuzzParse(f *testing.F) {
	for _, g := range golden {
		f.Add(g.message.Append(nil))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		m, err := Parse(in)
		if err != nil {
			return
		}
		again, err := Parse(m.Append(nil))
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("%#v became %#v, %v", m, again, err)
		}
	})
}
