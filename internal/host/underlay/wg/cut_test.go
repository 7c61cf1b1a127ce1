package wg

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// slowSum is RFC 1071 as it is written.
func slowSum(b []byte, s uint32) uint16 {
	for i := 0; i < len(b); i += 2 {
		s += uint32(b[i]) << 8
		if i+1 < len(b) {
			s += uint32(b[i+1])
		}
		s = s>>16 + s&0xffff
	}
	return uint16(s>>16 + s&0xffff)
}

// tcp is a frame of a flow.
func tcp(port uint16, seq uint32, flags byte, options, payload int) []byte {
	f := make([]byte, afterIPv6+tcpLength+options+payload)
	for i := range f {
		f[i] = byte(i * int(port))
	}
	for i := range payload { // content follows the sequence numbers
		f[len(f)-payload+i] = byte((seq + uint32(i)) * 7)
	}
	binary.BigEndian.PutUint16(f[etherType:], etherIPv6)
	f[etherLength], f[ipv6Next] = 0x60, protoTCP
	binary.BigEndian.PutUint16(f[ipv6Payload:], uint16(len(f)-afterIPv6))
	binary.BigEndian.PutUint16(f[afterIPv6:], port)
	binary.BigEndian.PutUint32(f[afterIPv6+tcpSeq:], seq)
	f[afterIPv6+tcpOffset], f[afterIPv6+tcpFlags] = byte((tcpLength+options)/4<<4), flags
	binary.BigEndian.PutUint16(f[afterIPv6+tcpChecksum:], 0)
	s := slowSum(f[ipv6Source:], uint32(len(f)-afterIPv6)+protoTCP)
	binary.BigEndian.PutUint16(f[afterIPv6+tcpChecksum:], ^s)
	return f
}

func joined(t testing.TB, all [][]byte) (large [][]byte) {
	var j joiner
	for range 2 { // the second has the room of the first
		large = nil
		for _, f := range all {
			j.add(append(make([]byte, vnetLength), f...))
		}
		err := j.flush(func(pieces [][]byte) error {
			large = append(large, bytes.Join(pieces, nil))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return large
}

// cut does with large frames what the kernel or a tunnel does.
func cut(t testing.TB, large [][]byte) (all [][]byte) {
	for _, b := range large {
		s, ok := split(readVnet(b), b[vnetLength:])
		if !ok {
			t.Fatalf("no sense is made of %x", b)
		}
		room := make([]byte, 1<<17)
		for n := s.next(room); n > 0; n = s.next(room) {
			all = append(all, slices.Clone(room[:n]))
		}
	}
	return all
}

// flow is of what a program sends at once, cut to a size.
func flow(port uint16, seq uint32, size, n, last int) (all [][]byte) {
	for range n {
		all = append(all, tcp(port, seq, flagACK, 12, size))
		seq += uint32(size)
	}
	return append(all, tcp(port, seq, flagACK|flagPSH, 12, last))
}

func TestWhatIsJoinedIsCutIntoTheSame(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for name, c := range map[string]struct {
		frames [][]byte
		large  int
	}{
		"a burst":                        {flow(1, 1<<32-5000, 1300, 20, 100), 1},
		"a last one as large":            {flow(1, 77, 1300, 9, 1300), 1},
		"odd sizes":                      {flow(1, 77, 1299, 9, 7), 1},
		"two bursts":                     {append(flow(1, 1, 1300, 5, 10), flow(1, 1+5*1300+10, 1300, 5, 10)...), 2},
		"more than IPv6 takes":           {flow(1, 1, 1300, 60, 10), 2},
		"a gap":                          {append(flow(1, 1, 1300, 5, 10), flow(1, 9000, 1300, 5, 10)...), 2},
		"alone":                          {[][]byte{tcp(1, 1, flagACK, 0, 1)}, 1},
		"other options":                  {[][]byte{tcp(1, 1, flagACK, 12, 100), tcp(1, 101, flagACK, 0, 100)}, 2},
		"growing":                        {[][]byte{tcp(1, 1, flagACK, 12, 100), tcp(1, 101, flagACK, 12, 101)}, 2},
		"behind a short one":             {[][]byte{tcp(1, 1, flagACK, 12, 100), tcp(1, 101, flagACK, 12, 50), tcp(1, 151, flagACK, 12, 50)}, 2},
		"an end":                         {[][]byte{tcp(1, 1, flagACK, 12, 100), tcp(1, 101, flagACK|flagFIN, 12, 100), tcp(1, 101, flagACK, 12, 100)}, 3},
		"a bare acknowledgement between": {[][]byte{tcp(1, 1, flagACK, 12, 100), tcp(1, 101, flagACK, 12, 0), tcp(1, 101, flagACK, 12, 100)}, 3},
		"no IPv6":                        {[][]byte{make([]byte, 60), make([]byte, 60)}, 2},
	} {
		large := joined(t, c.frames)
		if len(large) != c.large {
			t.Errorf("%s: %d large frames, want %d", name, len(large), c.large)
		}
		if got := cut(t, large); !slices.EqualFunc(got, c.frames, bytes.Equal) {
			t.Errorf("%s: %d frames are cut to %d others:\n%x\nwant\n%x", name, len(c.frames), len(got), got, c.frames)
		}
	}
}

func TestFlowsThatTakeTurnsAreJoinedEach(t *testing.T) {
	a, b := flow(1, 1, 1300, 9, 10), flow(2, 99, 1200, 9, 10)
	var mixed [][]byte
	for i := range a {
		mixed = append(mixed, a[i], b[i])
	}
	if large := joined(t, mixed); len(large) != 2 || !slices.EqualFunc(cut(t, large), append(a, b...), bytes.Equal) {
		t.Errorf("%d large frames of two flows", len(large))
	}
}

func TestAFrameWithAWrongSumIsPassedOnAsItIs(t *testing.T) {
	frames := flow(1, 1, 1300, 2, 10)
	frames[1][len(frames[1])-1] ^= 1
	if got := cut(t, joined(t, frames)); !slices.EqualFunc(got, frames, bytes.Equal) {
		t.Error("it was mended, or lost")
	}
}

func TestHeadersWithinWireGuardAreReadAsWritten(t *testing.T) {
	in := underlay.Port{Number: 0xabcdef}.Inside(false)
	b := append(make([]byte, insideHead), tcp(1, 1, flagACK, 0, 9)...)
	wrap(b, in)
	if slowSum(b[:ipv4Length], 0) != 0xffff {
		t.Errorf("the checksum of %x is wrong", b[:ipv4Length])
	}
	if from, frame, ok := unwrap(b); !ok || from != in.Local || !bytes.Equal(frame, b[insideHead:]) || from != netip.MustParseAddr("10.171.205.239") {
		t.Errorf("%x is read as from %v, %v", b, from, ok)
	}
	for name, i := range map[string]int{"options": 0, "a fragment": 6, "a protocol": 9, "a length": 3, "a port": 23, "no number": 28, "another's number": 34} {
		bad := slices.Clone(b)
		bad[i] ^= 0x08
		if _, _, ok := unwrap(bad); ok {
			t.Errorf("%s: it is taken", name)
		}
	}
}

func FuzzUnwrapAndJoin(f *testing.F) {
	b := append(make([]byte, insideHead), tcp(1, 1, flagACK, 0, 9)...)
	wrap(b, underlay.Port{Number: 7}.Inside(true))
	f.Add(b)
	f.Add(b[:insideHead])
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, frame, ok := unwrap(b); ok {
			want := [][]byte{frame, frame}
			if got := cut(t, joined(t, want)); !slices.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("%x became %x", want, got)
			}
		}
	})
}

func FuzzSplit(f *testing.F) {
	f.Add(append(make([]byte, vnetLength), tcp(1, 1, flagACK, 0, 9)...))
	f.Add(joined(f, flow(1, 1, 100, 3, 5))[0])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < vnetLength {
			return
		}
		s, ok := split(readVnet(b), b[vnetLength:])
		if !ok {
			return
		}
		room := make([]byte, 2000)
		for n, all := s.next(room), 0; n > 0; n = s.next(room) {
			if all++; all > len(b) {
				t.Fatal("it has no end")
			}
		}
	})
}
