package wire

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
	"scaffold.dev/scaffold/sid"
)

var (
	stable = netip.MustParseAddr("fd5d:0:1:101:8000::1")
	claim  = Claim{Stable: stable, Epoch: 3, Seen: 2, Socket: 0x8000000000000002, Quote: 0x8000000000000003,
		Chain: []sid.SocketID{0x8000000000000001}}
	// flowGolden fixes the bytes of docs/protocol.md §6.
	flowGolden = []struct {
		message Message
		hex     string
	}{
		{Renegotiate{Kind: TypeRSYN, Locator: 0xfd5d000000010201, Old: 0xfd5d000000010101, Claims: []Claim{claim}},
			"0107005c 00000000 0000000000000000 fd5d000000010201 fd5d000000010101 01000000" + claimHex + "00000000"},
		{Resume{Locator: 0xfd5d000000010201, Claim: claim, Service: sid.ServiceID{SS: 1, Suffix: 0x20000}, Proto: sid.TCP,
			Transport: Transport{ClientPort: 1, ServerPort: 80, SACK: true, Scales: true, ClientScale: 7, ServerScale: 8, MSS: 1400,
				SndUna: 1, RcvNxt: 2, TSVal: 3, TSEcr: 4, Sent: 5, Received: 6}},
			"010a0088 00000000 0000000000000000 fd5d000000010201" + claimHex + "00000001 0000000000020000 06050708 0001 0050 0578 0000" +
				"00000001 00000002 00000003 00000004 0000000000000005 0000000000000006 00000000"},
		{FlowFail{Locator: 0xfd5d000000010201, Reason: Elsewhere, Flows: []Failed{{stable, 3, true, 0x8000000000000002, 0}}},
			"010b0048 00000000 0000000000000000 fd5d000000010201 07010000 fd5d0000000101018000000000000001" +
				"00000003 01000000 8000000000000002 0000000000000000 00000000"},
	}
)

const claimHex = "fd5d0000000101018000000000000001 00000003 00000002 8000000000000002 8000000000000003 00010000 8000000000000001"

func TestGoldenFlows(t *testing.T) {
	for _, g := range flowGolden {
		want := strings.ReplaceAll(g.hex, " ", "")
		if got := hex.EncodeToString(g.message.Append(nil)); got != want {
			t.Errorf("%v:\n got %s\nwant %s", g.message.Type(), got, want)
		}
	}
}

func anySocket(t *rapid.T, what string) sid.SocketID {
	return sid.NewSocketID(rapid.Uint64().Draw(t, what))
}

func anyClaim(t *rapid.T) Claim {
	c := Claim{
		Stable: sid.Locator(rapid.Uint64Min(1).Draw(t, "locator")).Addr(uint64(anySocket(t, "first"))),
		Epoch:  rapid.Uint32().Draw(t, "epoch"), Seen: rapid.Uint32().Draw(t, "seen"),
		Socket: anySocket(t, "socket"), Server: rapid.Bool().Draw(t, "server"),
	}
	if rapid.Bool().Draw(t, "resolved") {
		c.Quote = anySocket(t, "quote")
	}
	for range rapid.IntRange(0, MaxChain).Draw(t, "chain") {
		c.Chain = append(c.Chain, anySocket(t, "earlier"))
	}
	return c
}

func anyAuth(t *rapid.T) (a Auth) {
	for range rapid.IntRange(0, MaxCertificates).Draw(t, "certificates") {
		b := rapid.SliceOfN(rapid.Byte(), CertificateLen, CertificateLen).Draw(t, "certificate")
		a.Certificates = append(a.Certificates, parseCertificate(b))
	}
	if rapid.Bool().Draw(t, "succeeds") {
		s, _ := ParseSuccession(rapid.SliceOfN(rapid.Byte(), SuccessionLen, SuccessionLen).Draw(t, "succession"))
		a.Succession = &s
	}
	if rapid.Bool().Draw(t, "signed") {
		a.Signature = rapid.SliceOfN(rapid.Byte(), signatureLen, signatureLen).Draw(t, "signature")
	}
	return a
}

func anyFlowMessage(t *rapid.T) Message {
	h := Header{KeyID: rapid.Uint32().Draw(t, "key")}
	where := sid.Locator(rapid.Uint64().Draw(t, "where"))
	switch kind := rapid.SampledFrom([]Type{TypeRSYN, TypeRSYNACK, TypeRACK, TypeResume, TypeFlowFail}).Draw(t, "type"); kind {
	case TypeResume:
		return Resume{h, where, anyClaim(t), sid.ServiceID{SS: 9, Suffix: 10}, sid.TCP, anyTransport(t), anyAuth(t)}
	case TypeFlowFail:
		c := anyClaim(t)
		return FlowFail{h, where, Reason(rapid.Byte().Draw(t, "reason")), []Failed{{c.Stable, c.Epoch, c.Server, c.Socket, c.Quote}}, anyAuth(t)}
	default:
		return Renegotiate{h, kind, where, where + 1, []Claim{anyClaim(t), anyClaim(t)}, anyAuth(t)}
	}
}

func anyTransport(t *rapid.T) Transport {
	n := rapid.Uint32()
	flag := rapid.Bool()
	return Transport{1, uint16(n.Draw(t, "port")), flag.Draw(t, "sack"), flag.Draw(t, "ts"), flag.Draw(t, "ws"), 7, 8, 1400,
		n.Draw(t, "una"), n.Draw(t, "nxt"), n.Draw(t, "val"), n.Draw(t, "ecr"), rapid.Uint64().Draw(t, "sent"), 3}
}

func TestParseUndoesAppendForFlows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyFlowMessage(t)
		got, err := Parse(m.Append(nil))
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("Parse(Append(%#v)) = %#v, %v", m, got, err)
		}
	})
}

func TestCutMessagesAreRefused(t *testing.T) {
	for _, g := range flowGolden {
		whole := g.message.Append(nil)
		for n := HeaderLen; n < len(whole); n++ {
			b := append([]byte(nil), whole[:n]...)
			b[2], b[3] = byte(n>>8), byte(n)
			if m, err := Parse(b); err == nil {
				t.Fatalf("%v cut to %d of %d bytes was taken: %v", g.message.Type(), n, len(whole), m)
			}
		}
	}
}

func TestRoomIsWhatFits(t *testing.T) {
	m := Renegotiate{Kind: TypeRSYN, Auth: Auth{Certificates: make([]Certificate, 2), Signature: make([]byte, signatureLen)}}
	for n := 0; n+claim.Len() <= Room(2); n += claim.Len() {
		m.Claims = append(m.Claims, claim)
	}
	f := FlowFail{Flows: make([]Failed, FailRoom(2)), Auth: m.Auth}
	for i := range f.Flows {
		f.Flows[i].Stable = stable
	}
	if SuccessionLen > CertificateLen {
		t.Errorf("a succession of %d bytes does not fit into the room of a certificate, %d", SuccessionLen, CertificateLen)
	}
	if n, k := len(m.Append(nil)), len(f.Append(nil)); n > MaxLen || k > MaxLen || len(m.Claims) < 10 {
		t.Errorf("%d claims in %d bytes, %d failures in %d, at most %d bytes", len(m.Claims), n, len(f.Flows), k, MaxLen)
	}
}

func TestOnlyTheOwnerOfTheLocatorsCanSign(t *testing.T) {
	network, host, other := newKey(1), newKey(2), newKey(3)
	pub := func(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }
	mine := Certify(network, pub(host), 0xfd5d000000010201, 100, 200)
	old := Certify(network, pub(host), 0xfd5d000000010101, 100, 200)
	forged := Certify(other, pub(other), 0xfd5d000000010201, 100, 200)
	theirs := Certify(network, pub(other), 0xfd5d000000010301, 100, 200)
	unsigned := func(list ...Certificate) Renegotiate {
		return Renegotiate{Kind: TypeRSYN, Locator: 0xfd5d000000010201, Old: 0xfd5d000000010101, Claims: []Claim{claim}, Auth: Auth{Certificates: list}}
	}
	changed := Sign(unsigned(mine, old), host).(Renegotiate)
	changed.Claims = []Claim{claim, claim}
	cases := []struct {
		name string
		m    Message
		now  int64
		want error
	}{
		{"the owner", Sign(unsigned(mine, old), host), 150, nil},
		{"unsigned", unsigned(mine, old), 150, ErrUnsigned},
		{"no certificates", Sign(unsigned(), host), 150, ErrUnsigned},
		{"one locator missing", Sign(unsigned(mine), host), 150, ErrUncovered},
		{"the other's locator", Sign(unsigned(theirs, mine, old), other), 150, ErrUncovered},
		{"another's signature", Sign(unsigned(mine, old), other), 150, ErrSignature},
		{"certified by itself", Sign(unsigned(forged, old), other), 150, ErrCertificate},
		{"changed behind the signature", changed, 150, ErrSignature},
		{"too early", Sign(unsigned(mine, old), host), 99, ErrExpired},
		{"too late", Sign(unsigned(mine, old), host), 201, ErrExpired},
	}
	for _, c := range cases {
		parsed, err := Parse(c.m.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		err = Verify(parsed, pub(network), c.now, 0xfd5d000000010201, 0xfd5d000000010101)
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: Verify = %v, want %v", c.name, err, c.want)
		}
	}
}

func newKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(append(make([]byte, 31), seed))
}

func FuzzParseFlows(f *testing.F) {
	for _, g := range flowGolden {
		f.Add(g.message.Append(nil))
	}
	f.Add(Sign(flowGolden[0].message, newKey(1)).Append(nil))
	succeeded := flowGolden[0].message.(Renegotiate)
	s := Succeed(newKey(2), newKey(1).Public().(ed25519.PublicKey), newKey(3).Public().(ed25519.PublicKey), 1, 2)
	succeeded.Auth.Succession = &s
	f.Add(Sign(succeeded, newKey(1)).Append(nil))
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
