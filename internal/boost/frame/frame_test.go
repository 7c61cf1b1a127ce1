package frame

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

// A payloadFrame is a frame with a payload of its own.
type payloadFrame interface{ Append(b []byte) []byte }

// reparse reads a frame as a driver does: header first, then what it says that follows.
func reparse(b []byte) (any, error) {
	h, err := ParseHeader(b)
	if err != nil {
		return nil, err
	}
	return body(h, b[HeaderLen:])
}

func body(h Header, b []byte) (any, error) {
	switch h.Type {
	case TypeHello:
		m, err := ParseHello(h, b)
		return &m, err
	case TypeOpen:
		m, err := ParseOpen(h, b)
		return &m, err
	case TypeOpened:
		m, err := ParseOpened(h, b)
		return &m, err
	case TypeRefused:
		return second(ParseRefused(h, b))
	case TypeAbort:
		return second(ParseAbort(h, b))
	case TypeState:
		m, err := ParseState(h, b, nil)
		return &m, err
	case TypeResume:
		m, err := ParseResume(h, b)
		return &m, err
	case TypeTakeover:
		m, err := ParseTakeover(h, b)
		return &m, err
	case TypeTaken:
		return second(ParseTaken(h, b))
	}
	return h, nil
}

func second[T any](m T, err error) (any, error) { return m, err }

// syn and own are the options of two ends.
var (
	syn = Options{Sequence: 0x01020304, Timestamp: 5, MSS: 1460, WindowScale: 7, SACK: true, HasTimestamps: true, Scaled: true}
	own = Options{Sequence: 0xfffffffe, MSS: 1220}
)

// golden fixes the bytes of docs/protocol.md §9: a change here is a change of the protocol.
var golden = []struct {
	frame payloadFrame
	hex   string
}{
	{&Hello{From: 1, To: 2, Use: Data, Protection: Sealed, Trunk: 3, Incarnation: 4, Connection: 5, MAC: [16]byte{1, 15: 2}},
		"01000000 00000038 0000000000000000 0000000000000000 53434246 00000001 00000002 02010000 0000000000000003 0000000000000004 0000000000000005 01000000000000000000000000000002"},
	{&Open{Session: 7, Lane: 8, Credit: 65536, Client: netip.MustParseAddrPort("192.0.2.1:4660"), Server: netip.MustParseAddrPort("198.51.100.2:443"), SYN: syn},
		"02000000 00000040 0000000000000007 0000000000000000 0000000000000008 0000000000010000 00000000000000000000ffffc0000201 00000000000000000000ffffc6336402 1234 01bb 01020304 00000005 05b4 07 07"},
	{&Open{Session: 7, Client: netip.MustParseAddrPort("[2001:db8::1]:4660"), Server: netip.MustParseAddrPort("[2001:db8::2]:443"), SYN: own},
		"02000000 00000040 0000000000000007 0000000000000000 0000000000000000 0000000000000000 20010db8000000000000000000000001 20010db8000000000000000000000002 1234 01bb fffffffe 00000000 04c4 00 00"},
	{&Opened{Session: 7, Credit: 1, Host: syn, Own: own},
		"03000000 00000020 0000000000000007 0000000000000000 0000000000000001 01020304 00000005 05b4 07 07 fffffffe 00000000 04c4 00 00"},
	{Refused{7, NotMyLane}, "04000000 00000004 0000000000000007 0000000000000000 04000000"},
	{Chunk(7, 9, 65536), "05000000 00010000 0000000000000007 0000000000000009"},
	{End(7, 9), "06000000 00000000 0000000000000007 0000000000000009"},
	{Abort{7, 9, Reset}, "07000000 00000004 0000000000000007 0000000000000009 01000000"},
	{&State{Session: 7, Acknowledged: 9, Ended: true, Arrived: 10, Credit: 20, Ranges: []Range{{11, 12}, {13, 20}}},
		"08010000 00000030 0000000000000007 0000000000000009 000000000000000a 0000000000000014 000000000000000b 000000000000000c 000000000000000d 0000000000000014"},
	{&Resume{Session: 7, Wanted: 9, Acknowledged: 8, Credit: 10, Kept: Range{1, 2}, Ended: true},
		"09010000 00000020 0000000000000007 0000000000000009 0000000000000008 000000000000000a 0000000000000001 0000000000000002"},
	{&Resume{}, "09000000 00000000 0000000000000000 0000000000000000"},
	{Ping(0xffffffffffffffff), "0a000000 00000000 0000000000000000 ffffffffffffffff"},
	{Ping(3).Answered(), "0a010000 00000000 0000000000000000 0000000000000003"},
	{Want(4), "0a020000 00000000 0000000000000000 0000000000000004"},
	{Retire(7), "0b000000 00000000 0000000000000007 0000000000000000"},
	{&Takeover{Open: Open{Session: 7, Lane: 8, Credit: 65536, Client: netip.MustParseAddrPort("192.0.2.1:4660"), Server: netip.MustParseAddrPort("198.51.100.2:443"), SYN: syn},
		Arrived: 9, Kept: Range{16, 32}, Ended: true, Client: true, Host: syn, Own: own},
		"0c010000 0000006c 0000000000000007 0000000000000009 0000000000000008 0000000000010000 00000000000000000000ffffc0000201 00000000000000000000ffffc6336402 1234 01bb 01020304 00000005 05b4 07 07" +
			"0000000000000010 0000000000000020 01020304 00000005 05b4 07 07 fffffffe 00000000 04c4 00 00 01000000"},
	{Taken{7, 9, 16}, "0d000000 00000008 0000000000000007 0000000000000009 0000000000000010"},
}

func TestFramesHaveTheBytesOfTheDocument(t *testing.T) {
	safety.Test(t, safety.Bytes)
	seen := map[Type]bool{}
	for _, g := range golden {
		want := strings.ReplaceAll(g.hex, " ", "")
		b := g.frame.Append(nil)
		seen[Type(b[0])] = true
		if got := hex.EncodeToString(b); got != want {
			t.Errorf("%T:\n got %s\nwant %s", g.frame, got, want)
		}
		if got, err := reparse(b); err != nil || !reflect.DeepEqual(got, g.frame) {
			t.Errorf("%#v was read as %#v, %v", g.frame, got, err)
		}
	}
	for i := range shapes {
		if Type(i).known() && !seen[Type(i)] {
			t.Errorf("no bytes of %v are fixed", Type(i))
		}
	}
}

func TestParseUndoesAppend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyFrame(t)
		b := m.Append([]byte("before"))[len("before"):]
		got, err := reparse(b)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%#v was read as %#v, %v", m, got, err)
		}
	})
}

func anyFrame(t *rapid.T) payloadFrame {
	session := rapid.Uint64Min(1).Draw(t, "session")
	most := uint64(MaxOffset)
	offsets := func(n int) []uint64 { // ascending
		all := rapid.SliceOfNDistinct(rapid.Uint64Range(0, most-MaxData), n, n, rapid.ID[uint64]).Draw(t, "offsets")
		for i := range all { // insertion sort: n is small
			for j := i; j > 0 && all[j] < all[j-1]; j-- {
				all[j], all[j-1] = all[j-1], all[j]
			}
		}
		return all
	}
	switch Type(rapid.IntRange(1, len(shapes)-1).Draw(t, "type")) {
	case TypeHello:
		m := &Hello{From: rapid.Uint32Min(1).Draw(t, "from"), Use: Use(rapid.IntRange(1, 2).Draw(t, "use")),
			Protection: Protection(rapid.IntRange(1, 3).Draw(t, "protection")), Trunk: rapid.Uint64().Draw(t, "trunk"),
			Incarnation: rapid.Uint64().Draw(t, "incarnation"), Connection: rapid.Uint64().Draw(t, "connection")}
		m.To = rapid.Uint32Min(m.From).Draw(t, "to")
		copy(m.MAC[:], rapid.SliceOfN(rapid.Byte(), MACLen, MACLen).Draw(t, "mac"))
		return m
	case TypeOpen:
		size := rapid.SampledFrom([]int{4, 16}).Draw(t, "family")
		return &Open{Session: session, Lane: rapid.Uint64().Draw(t, "lane"), Credit: offsets(1)[0],
			Client: anyEnd(t, size), Server: anyEnd(t, size), SYN: anyOptions(t)}
	case TypeOpened:
		return &Opened{Session: session, Credit: offsets(1)[0], Host: anyOptions(t), Own: anyOptions(t)}
	case TypeRefused:
		return Refused{session, Refusal(rapid.IntRange(1, 6).Draw(t, "reason"))}
	case TypeData:
		return Chunk(session, offsets(1)[0], rapid.Uint32Range(1, MaxData).Draw(t, "length"))
	case TypeEnd:
		return End(session, offsets(1)[0])
	case TypeAbort:
		return Abort{session, offsets(1)[0], Cause(rapid.IntRange(1, 5).Draw(t, "cause"))}
	case TypeState:
		n := rapid.IntRange(0, MaxRanges).Draw(t, "ranges")
		o := offsets(3 + 2*n)
		m := &State{Session: session, Acknowledged: o[0], Ended: rapid.Bool().Draw(t, "ended"), Arrived: o[1], Credit: o[len(o)-1]}
		for i := range n {
			m.Ranges = append(m.Ranges, Range{o[2+2*i], o[3+2*i]})
		}
		return m
	case TypeResume:
		if rapid.Bool().Draw(t, "all") {
			return &Resume{}
		}
		o, kept := offsets(3), offsets(2)
		return &Resume{Session: session, Acknowledged: o[0], Wanted: o[1], Credit: o[2], Kept: Range{kept[0], kept[1]}, Ended: rapid.Bool().Draw(t, "ended")}
	case TypePing:
		h := Ping(rapid.Uint64().Draw(t, "number"))
		if rapid.Bool().Draw(t, "wish") {
			return Want(rapid.IntRange(1, MaxConnections).Draw(t, "connections"))
		}
		if rapid.Bool().Draw(t, "answer") {
			return h.Answered()
		}
		return h
	case TypeTakeover:
		most = maxTaken
		size, o := rapid.SampledFrom([]int{4, 16}).Draw(t, "family"), offsets(2)
		m := &Takeover{Open: Open{Session: session, Lane: rapid.Uint64().Draw(t, "lane"), Credit: o[1], Client: anyEnd(t, size), Server: anyEnd(t, size), SYN: anyOptions(t)},
			Arrived: o[0], Host: anyOptions(t), Own: anyOptions(t), Ended: rapid.Bool().Draw(t, "ended"), Client: rapid.Bool().Draw(t, "client")}
		m.Kept.From = offsets(1)[0]
		m.Kept.To = m.Kept.From + rapid.Uint64Range(0, MaxData).Draw(t, "kept")
		return m
	case TypeTaken:
		most = maxTaken
		o := offsets(2)
		return Taken{session, o[0], o[1]}
	}
	return Retire(session)
}

func anyEnd(t *rapid.T, size int) netip.AddrPort {
	b := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "address")
	b[0] = b[0]&0x1f | 0x20 // one machine's, and no IPv4 address in IPv6's clothes
	a, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a, rapid.Uint16Min(1).Draw(t, "port"))
}

func anyOptions(t *rapid.T) Options {
	return Options{Sequence: rapid.Uint32().Draw(t, "sequence"), Timestamp: rapid.Uint32().Draw(t, "timestamp"),
		MSS: rapid.Uint16().Draw(t, "mss"), WindowScale: rapid.Uint8Range(0, 14).Draw(t, "scale"),
		SACK: rapid.Bool().Draw(t, "sack"), HasTimestamps: rapid.Bool().Draw(t, "timestamps"), Scaled: rapid.Bool().Draw(t, "scaled")}
}

// TestEachFaultIsNamed changes one field of a good frame, and wants the error to name it.
func TestEachFaultIsNamed(t *testing.T) {
	hello, open := *golden[0].frame.(*Hello), *golden[1].frame.(*Open)
	state := State{Session: 7, Acknowledged: 9, Arrived: 10, Credit: 20, Ranges: []Range{{11, 12}}}
	resume := Resume{Session: 7, Wanted: 9, Acknowledged: 8, Credit: 10, Kept: Range{1, 2}}
	over := Takeover{Open: open, Arrived: 9, Kept: Range{1, 2}}
	for _, c := range []struct {
		frame payloadFrame
		at    int
		put   string
		want  string
	}{
		{Retire(7), 0, "00", "frame type 0 of session 0x7: type is 0, expected 1 to 13"},
		{Retire(7), 0, "0e", "type is 14, expected 1 to 13"},
		{Chunk(7, 0, 1), 4, "00000000", "frame DATA of session 0x7: length is 0, expected 1 to 1048576"},
		{Chunk(7, 0, 1), 4, "00100001", "length is 1048577, expected 1 to 1048576"},
		{Chunk(7, 0, 1), 4, "ffffffff", "length is 4294967295, expected 1 to 1048576"},
		{Chunk(7, 0, 1), 8, "0000000000000000", "frame DATA: session is 0, expected that of a connection, not 0"},
		{Chunk(7, 0, 1), 16, "4000000000000000", "offset is 4611686018427387904, expected at most 4611686018427387904 with all bytes of the payload"},
		{Chunk(7, 0, 1), 16, "ffffffffffffffff", "frame DATA of session 0x7: offset is 18446744073709551615, expected"},
		{End(7, 0), 4, "00000001", "frame END of session 0x7: length is 1, expected 0"},
		{Ping(0), 8, "0000000000000001", "frame PING of session 0x1: session is 1, expected 0: it is about the trunk"},
		{&over, 32, "0000000000000008", "frame TAKEOVER of session 0x7: credit is 8, expected 9 to 4611686018427387904"},
		{&over, 88, "0000000000000003", "end of what is kept is 2, expected 3 to 2305843009213693952"},
		{&over, 96, "0000000040000002", "end of what is kept is 1073741826, expected at most 1073741824 bytes behind its beginning"},
		{&over, 16, "2000000000000001", "frame TAKEOVER of session 0x7: what has come is 2305843009213693953, expected 0 to 2305843009213693952"},
		{&over, 88, "20000000000000002000000000000001", "end of what is kept is 2305843009213693953, expected 2305843009213693952 to 2305843009213693952"},
		{Taken{7, 9, 10}, 16, "20000000000000012000000000000001", "frame TAKEN of session 0x7: offset is 2305843009213693953, expected 0 to 2305843009213693952"},
		{&over, 128, "02", "side is 2, expected 0 (the server) or 1 (the client)"},
		{&over, 72, "0000", "client's port is 0, expected 1 to 65535"},
		{Taken{7, 9, 10}, 24, "0000000000000008", "frame TAKEN of session 0x7: credit is 8, expected 9 to 4611686018427387904"},
		{&hello, 24, "47455420", "frame HELLO: magic is 1195725856, expected 1396916806: the peer is no boost agent"},
		{&hello, 28, "00000000", "frame HELLO: lowest version is 0, expected at least 1"},
		{&hello, 32, "00000000", "frame HELLO: highest version is 0, expected no less than the lowest"},
		{&hello, 36, "03", "frame HELLO: use is 3, expected 1 (control) or 2 (data)"},
		{&hello, 37, "04", "frame HELLO: protection is 4, expected 1 (sealed), 2 (authenticated) or 3 (none)"},
		{&hello, 23, "01", "frame HELLO: offset is 1, expected 0"},
		{&open, 23, "01", "frame OPEN of session 0x7: offset is 1, expected 0"},
		{&open, 32, "ffffffffffffffff", "frame OPEN of session 0x7: credit is 18446744073709551615, expected 0 to 4611686018427387904"},
		{&open, 40, strings.Repeat("00", 16), "frame OPEN of session 0x7: client's address is ::, expected an address of one machine"},
		{&open, 56, "ff02", "expected an address of one machine"},
		{&open, 56, "2001", "expected one of the family of the client's, 192.0.2.1"},
		{&open, 72, "0000", "client's port is 0, expected 1 to 65535"},
		{&open, 74, "0000", "server's port is 0, expected 1 to 65535"},
		{&open, 86, "0f", "frame OPEN of session 0x7: window scale is 15, expected 0 to 14"},
		{&Opened{Session: 7}, 54, "0f", "frame OPENED of session 0x7: window scale is 15, expected 0 to 14"},
		{&Opened{Session: 7}, 24, "ff", "frame OPENED of session 0x7: credit is 18374686479671623680, expected 0 to"},
		{&Opened{Session: 7}, 23, "02", "frame OPENED of session 0x7: offset is 2, expected 0"},
		{Refused{7, NoRoom}, 24, "00", "frame REFUSED of session 0x7: reason is 0, expected 1 to 6"},
		{Refused{7, NoRoom}, 23, "01", "frame REFUSED of session 0x7: offset is 1, expected 0"},
		{Abort{7, 0, Dead}, 24, "06", "frame ABORT of session 0x7: cause is 6, expected 1 to 5"},
		{&state, 4, "00000018", "frame STATE of session 0x7: payload is 32 bytes, expected the 24 of its length"},
		{&state, 23, "0b", "frame STATE of session 0x7: arrived is 10, expected 11 to 4611686018427387904"},
		{&state, 39, "09", "frame STATE of session 0x7: credit is 9, expected 10 to"},
		{&state, 39, "0b", "frame STATE of session 0x7: credit is 11, expected no less than what has arrived"},
		{&state, 47, "0a", "frame STATE of session 0x7: range's beginning is 10, expected 11 to"},
		{&state, 55, "0b", "frame STATE of session 0x7: range's end is 11, expected 12 to"},
		{&resume, 31, "0a", "frame RESUME of session 0x7: acknowledged is 10, expected no more than the offset"},
		{&resume, 39, "00", "frame RESUME of session 0x7: credit is 0, expected 9 to"},
		{&resume, 55, "00", "frame RESUME of session 0x7: end of what is kept is 0, expected 1 to"},
		{&resume, 15, "00", "frame RESUME: length is 32, expected 32 for a session, 0 for all"},
		{&Resume{}, 15, "01", "frame RESUME of session 0x1: length is 0, expected 32 for a session, 0 for all"},
		{&Resume{}, 23, "01", "frame RESUME: offset is 1, expected 0: it is about all sessions"},
	} {
		b := c.frame.Append(nil)
		put, _ := hex.DecodeString(c.put)
		copy(b[c.at:], put)
		got, err := reparse(b)
		if of := (*Error)(nil); !errors.As(err, &of) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T with %s at byte %d was read as %+v, %v; want an error with %q", c.frame, c.put, c.at, got, err, c.want)
		}
	}
	if _, err := ParseHeader(make([]byte, 23)); err == nil || err.Error() != "frame type 0: header is 23 bytes, expected 24 bytes" {
		t.Errorf("23 bytes: %v", err)
	}
}

// A payload that is cut short is refused by the parser of every frame that has one.
func TestTruncatedPayloadsAreRefused(t *testing.T) {
	for _, g := range golden {
		b := g.frame.Append(nil)
		for n := HeaderLen; n < len(b); n++ {
			if got, err := reparse(b[:n]); err == nil {
				t.Errorf("%d of %d bytes were read as %#v", n, len(b), got)
			}
		}
	}
}

func TestWhatAPeerWouldRefuseIsNotSent(t *testing.T) {
	v4, v6 := netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("[2001:db8::1]:1")
	for name, m := range map[string]payloadFrame{
		"families":       &Open{Session: 1, Client: v4, Server: v6},
		"no address":     &Open{Session: 1, Client: v4},
		"mapped address": &Open{Session: 1, Client: netip.MustParseAddrPort("[::ffff:192.0.2.1]:1"), Server: v6},
		"window scale":   &Opened{Session: 1, Host: Options{WindowScale: 15}},
		"no session":     Refused{0, NoRoom},
		"reason":         Refused{1, 0},
		"cause":          Abort{1, 0, 9},
		"length":         Chunk(1, 0, 0),
		"offset":         End(1, MaxOffset+1),
		"gapless range":  &State{Session: 1, Credit: 9, Ranges: []Range{{0, 1}}},
		"ranges":         &State{Session: 1, Credit: 9, Ranges: make([]Range, MaxRanges+1)},
		"credit":         &Resume{Session: 1, Wanted: 2, Credit: 1},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: %#v was written", name, m)
				}
			}()
			m.Append(nil)
		}()
	}
}

func TestFramesAreMadeAndReadWithoutAllocation(t *testing.T) {
	buf, ranges := make([]byte, 0, 1024), make([]Range, 0, MaxRanges)
	state := State{Session: 7, Acknowledged: 9, Arrived: 10, Credit: 20, Ranges: []Range{{11, 12}, {13, 20}}}
	open := golden[1].frame.(*Open)
	resume := golden[9].frame.(*Resume)
	for name, f := range map[string]func(){
		"DATA": func() {
			if h, err := ParseHeader(Chunk(7, 9, MaxData).Append(buf)); err != nil || h.End() != 9+MaxData {
				t.Fatal(h, err)
			}
		},
		"STATE": func() {
			b := state.Append(buf)
			h, _ := ParseHeader(b)
			if m, err := ParseState(h, b[HeaderLen:], ranges); err != nil || len(m.Ranges) != 2 {
				t.Fatal(m, err)
			}
		},
		"OPEN": func() {
			b := open.Append(buf)
			h, _ := ParseHeader(b)
			if m, err := ParseOpen(h, b[HeaderLen:]); err != nil || m != *open {
				t.Fatal(m, err)
			}
		},
		"RESUME": func() {
			b := resume.Append(buf)
			h, _ := ParseHeader(b)
			if m, err := ParseResume(h, b[HeaderLen:]); err != nil || m != *resume {
				t.Fatal(m, err)
			}
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations a frame, want none", name, n)
		}
	}
}

// A number of connections is taken where it is one that an agent may want; all else is a PING like any other, whose answer
// is no wish.
func TestAWishIsWithinItsBounds(t *testing.T) {
	safety.Test(t, safety.Door)
	for offset, want := range map[uint64]int{0: 0, 1: 1, MaxConnections: MaxConnections, MaxConnections + 1: 0, 1_000_000: 0, 1 << 32: 0, 1<<64 - 1: 0} {
		h := Header{Type: TypePing, Flags: wants, Offset: offset}
		if got, ok := h.Wanted(); got != want || ok != (want > 0) {
			t.Errorf("%d is taken for %d, %v", offset, got, ok)
		}
		if got, ok := h.Answered().Wanted(); ok {
			t.Errorf("the answer to %d is taken for %d", offset, got)
		}
		if got, ok := Ping(offset).Wanted(); ok {
			t.Errorf("PING %d is taken for %d", offset, got)
		}
	}
	for in, want := range map[int]int{-1: 1, 0: 1, 7: 7, 1_000_000: MaxConnections} {
		if got, ok := Want(in).Wanted(); got != want || !ok {
			t.Errorf("%d is said as %d", in, got)
		}
	}
}

// The MAC is of all that a HELLO says.
func TestAHelloClaimsAllButItsMAC(t *testing.T) {
	m := golden[0].frame.(*Hello)
	whole, claim := m.Append(nil), m.AppendClaim(nil)
	if len(whole) != HelloLen || HelloLen > 96 || string(claim) != string(whole[:HelloLen-MACLen]) {
		t.Errorf("a HELLO of %d bytes (%d are read before its MAC is verified, 96 at most) claims %x of %x", len(whole), HelloLen, claim, whole)
	}
}

func TestProtectionsAreWords(t *testing.T) {
	for p := Sealed; p <= None; p++ {
		if got, err := ParseProtection(p.String()); got != p || err != nil {
			t.Errorf("%v is read as %v, %v", p, got, err)
		}
		if n := p.Overhead(); n < 1 || n > MaxOverhead {
			t.Errorf("%v adds %d bytes", p, n)
		}
	}
	for _, bad := range []string{"", "tls", "Seal", "protection 9"} {
		if p, err := ParseProtection(bad); err == nil {
			t.Errorf("%q is read as %v", bad, p)
		}
	}
}
