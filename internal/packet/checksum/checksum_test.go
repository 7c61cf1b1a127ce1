package checksum

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strconv"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

// slow is RFC 1071 as it is written.
func slow(b []byte) uint16 {
	s := uint32(0)
	for i, octet := range b {
		s += uint32(octet) << (8 - 8*(i%2))
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestVectorsOfTheStandards(t *testing.T) {
	if got := Sum(unhex(t, "0001f203f4f5f6f7")); got != 0xddf2 { // RFC 1071, 3
		t.Errorf("the example of RFC 1071: %#x, want 0xddf2", got)
	}
	changed := []byte{0xdd, 0x2f} // RFC 1624, 4: the equation of before gave 0xffff
	if Update(changed, 0x5555, 0x3285); binary.BigEndian.Uint16(changed) != 0 {
		t.Errorf("the example of RFC 1624: %x, want 0000", changed)
	}
	header := unhex(t, "45000073000040004011b861c0a80001c0a800c7")
	if got := Sum(header); got != Good {
		t.Errorf("an IPv4 header: %#x, want %#x", got, Good)
	}
	clear(header[10:12])
	if got := ^Sum(header); got != 0xb861 {
		t.Errorf("the checksum of an IPv4 header: %#x, want 0xb861", got)
	}
}

func TestPseudoHeadersOfBothFamilies(t *testing.T) {
	for _, c := range [][2]string{{"2001:db8::ff:fffe", "fd5c:af::8000:0:0:1"}, {"192.0.2.1", "198.51.100.2"}, {"::", "::"}} {
		src, dst, b := netip.MustParseAddr(c[0]), netip.MustParseAddr(c[1]), unhex(t, "0035c0de000d000068656c6c6f")
		written := append(append(src.AsSlice(), dst.AsSlice()...), 0, 0, byte(len(b)>>8), byte(len(b)), 0, 17)
		if got, want := Fold(Add(Pseudo(src, dst, 17, len(b)), b)), slow(append(written, b...)); got != want {
			t.Errorf("%v to %v: %#x, want %#x", src, dst, got, want)
		}
	}
}

func TestUDPNeverSendsZero(t *testing.T) {
	for c, want := range map[uint16]uint16{0: 0xffff, 1: 1, 0xffff: 0xffff} {
		if got := NonZero(c); got != want {
			t.Errorf("%#x: %#x, want %#x", c, got, want)
		}
	}
}

// words are bytes with runs of ones and of zeros, where carries are made and lost.
var words = rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte{0, 0xff})), 0, 200)

func TestTheQuickSumIsTheSlowOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, from := words.Draw(t, "bytes"), rapid.Uint16().Draw(t, "from")
		if got, want := Fold(Add(uint64(from), b)), slow(append([]byte{byte(from >> 8), byte(from)}, b...)); got != want {
			t.Errorf("%#x, want %#x", got, want)
		}
	})
}

func TestPiecesAddUpToTheWhole(t *testing.T) {
	safety.Test(t, safety.Bytes)
	rapid.Check(t, func(t *rapid.T) {
		b := words.Draw(t, "bytes")
		at := rapid.IntRange(0, len(b)).Draw(t, "at") &^ 1
		if got, want := Fold(Add(Add(0, b[:at]), b[at:])), Sum(b); got != want {
			t.Errorf("cut at %d: %#x, want %#x", at, got, want)
		}
		if got := Plus(Sum(b[:at]), Sum(b[at:])); got != Sum(b) {
			t.Errorf("cut at %d, folded: %#x, want %#x", at, got, Sum(b))
		}
	})
}

func TestAChangedWordLeavesTheChecksumRight(t *testing.T) {
	safety.Test(t, safety.Bytes)
	rapid.Check(t, func(t *rapid.T) {
		b := append([]byte{0x45, 0}, words.Draw(t, "bytes")...)
		if len(b)%2 == 1 {
			b = append(b, 0)
		}
		sum := binary.BigEndian.AppendUint16(nil, ^Sum(b))
		at := 2 * rapid.IntRange(0, len(b)/2-1).Draw(t, "word")
		was, is := binary.BigEndian.Uint16(b[at:]), rapid.Uint16().Draw(t, "is")
		if at == 0 && is == 0 {
			is = 1 // a header is never all zeros
		}
		binary.BigEndian.PutUint16(b[at:], is)
		Update(sum, was, is)
		if got := Plus(Sum(b), binary.BigEndian.Uint16(sum)); got != Good {
			t.Errorf("%#x, want %#x", got, Good)
		}
	})
}

func FuzzSum(f *testing.F) {
	f.Add([]byte{}, 0)
	f.Add([]byte{0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7, 9}, 4)
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		at = min(max(0, at), len(b)) &^ 1
		if got, want := Fold(Add(Add(0, b[at:]), b[:at])), slow(b); got != want {
			t.Errorf("%x in the order of %d: %#x, want %#x", b, at, got, want)
		}
	})
}

func BenchmarkSum(b *testing.B) {
	for _, n := range []int{20, 40, 1500, 65536} {
		packet := make([]byte, n)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				Sum(packet)
			}
		})
	}
}
