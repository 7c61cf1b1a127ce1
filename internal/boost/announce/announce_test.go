package announce

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/packet/lldp"
	"scaffold.dev/scaffold/internal/tests/safety"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

var (
	ours   = bytes.Repeat([]byte{1}, KeyLen)
	theirs = bytes.Repeat([]byte{2}, KeyLen)
	usual  = Announcement{Agent: "w1", Port: "p0", MAC: [6]byte{2, 0, 0, 0, 0, 7}, Made: 258}
)

// Agents and controllers of other versions have the same layout, and the same proof.
func TestTheFrameIsAsDrawn(t *testing.T) {
	const want = "0180c200000e" + "020000000007" + "88cc" +
		"0203" + "07" + "7731" + "0403" + "05" + "7030" + "0602" + "0004" +
		"fe1c" + "5caf0103" + "0000000000000102" + "2b5526f371362f232bd1648080cd3152" + "0000"
	if got := hex.EncodeToString(usual.Append(nil, ours)); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestAnAnnouncementIsReadByAllAndProvedByItsMakerAlone(t *testing.T) {
	safety.Test(t, safety.Door)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching("[a-z0-9-]{1,63}")
		want := Announcement{Agent: name.Draw(t, "agent"), Port: name.Draw(t, "port"), MAC: [6]byte{2, 0, 0, 0, 0, 7}, Made: rapid.Uint64().Draw(t, "made")}
		frame := want.Append(nil, ours)
		got, err := Parse(frame)
		if err != nil || !got.Proves(ours) {
			t.Fatalf("%+v, %v, proves %v", got, err, got.Proves(ours))
		}
		if got.Proves(theirs) || got.Proves(nil) || got.Proves(ours[1:]) {
			t.Fatal("another's key proves it, or none")
		}
		want.Proof = got.Proof
		if got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		frame[rapid.IntRange(6, len(frame)-3).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		if got, err := Parse(frame); err == nil && got.Proves(ours) && got != want {
			t.Fatalf("an altered one was proved: %+v", got)
		}
	})
}

func TestNoFieldCanBeForged(t *testing.T) {
	safety.Test(t, safety.Door)
	made, err := Parse(usual.Append(nil, ours))
	if err != nil {
		t.Fatal(err)
	}
	for what, forge := range map[string]func(*Announcement){
		"agent":            func(a *Announcement) { a.Agent = "w2" },
		"port":             func(a *Announcement) { a.Port = "p1" },
		"where names part": func(a *Announcement) { a.Agent, a.Port = "w1p", "0" },
		"MAC":              func(a *Announcement) { a.MAC[5]++ },
		"number":           func(a *Announcement) { a.Made++ },
		"proof":            func(a *Announcement) { a.Proof[ProofLen-1]++ },
	} {
		forged := made
		if forge(&forged); forged.Proves(ours) {
			t.Errorf("another %s is proved", what)
		}
	}
	if empty := (Announcement{Agent: "w1", Port: "p0"}); empty.Proves(ours) {
		t.Error("zeros are a proof")
	}
	unkeyed, err := Parse(usual.Append(nil, nil))
	if err != nil || unkeyed.Proves(nil) {
		t.Errorf("a proof that anybody can make counts where there is no key: %v", err)
	}
}

func TestAnnouncementsThatBreakOffAreNone(t *testing.T) {
	frame := usual.Append(nil, ours)
	for n := range len(frame) - 2 { // the end may be missing
		if a, err := Parse(frame[:n]); !errors.Is(err, ErrNone) {
			t.Errorf("%d bytes of %d: %+v, %v", n, len(frame), a, err)
		}
	}
	if a, err := Parse(append(frame, make([]byte, 20)...)); err != nil || !a.Proves(ours) { // as Ethernet fills short frames
		t.Errorf("%+v, %v", a, err)
	}
}

// said is a frame of LLDP of these, proved by nobody.
func said(chassis, port, ours string) []byte {
	b := lldp.AppendHeader(nil, [6]byte{2})
	b = lldp.AppendTLV(b, lldp.ChassisID, []byte(chassis))
	b = lldp.AppendTLV(b, lldp.PortID, []byte(port))
	b = lldp.AppendTLV(b, lldp.Organization, []byte(ours))
	return lldp.AppendTLV(b, lldp.End)
}

func TestFramesOfOthersAreNone(t *testing.T) {
	own := headOfOurs + strings.Repeat("x", madeLen+ProofLen)
	if _, err := Parse(said("\x07w1", "\x05p0", own)); err != nil {
		t.Fatal(err)
	}
	for what, frame := range map[string][]byte{
		"of a switch":        said("\x07w1", "\x05p0", "\x5c\xaf\x01\x02"+own[4:]),
		"of another maker":   said("\x07w1", "\x05p0", "\x00\x80\xc2\x03"+own[4:]),
		"chassis by address": said("\x04\x02\x00\x00\x00\x00\x07", "\x05p0", own),
		"port by address":    said("\x07w1", "\x03\x02\x00\x00\x00\x00\x07", own),
		"no agent":           said("\x07", "\x05p0", own),
		"no chassis":         said("", "\x05p0", own),
		"a long proof":       said("\x07w1", "\x05p0", own+"x"),
		"a short proof":      said("\x07w1", "\x05p0", own[1:]),
		"a long name":        said("\x07"+strings.Repeat("w", MaxName+1), "\x05p0", own),
		"a long port":        said("\x07w1", "\x05"+strings.Repeat("p", MaxName+1), own),
		"no text":            said("\x07w\xff", "\x05p0", own),
		"two names":          said("\x07w1\x00p", "\x05p0", own),
		"lines for a log":    said("\x07w1", "\x05p0\nall is well", own),
		"no LLDP":            append(usual.Append(nil, ours)[:12], 0x86, 0xdd),
		"nothing":            nil,
	} {
		if a, err := Parse(frame); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %+v, %v", what, a, err)
		}
	}
}

func TestWhatCannotBeSaidIsNotSent(t *testing.T) {
	for _, a := range []Announcement{{Port: "p0"}, {Agent: "w1"}, {Agent: strings.Repeat("w", MaxName+1), Port: "p0"}, {Agent: "w1", Port: "p\xff"}} {
		if a.Check() == nil {
			t.Errorf("%+v is taken", a)
		}
	}
	if err := usual.Check(); err != nil {
		t.Error(err)
	}
}

// What was read is read again from what is written, and is proved.
func FuzzParse(f *testing.F) {
	frame := usual.Append(nil, ours)
	f.Add(frame)
	f.Add(frame[:len(frame)-5])
	f.Add(said("\x07w1", "\x05p0", headOfOurs+strings.Repeat("x", madeLen+ProofLen)))
	f.Fuzz(func(t *testing.T, in []byte) {
		a, err := Parse(in)
		if err != nil {
			return
		}
		again, err := Parse(a.Append(nil, ours))
		if err != nil || !again.Proves(ours) {
			t.Fatalf("%+v became %+v, %v", a, again, err)
		}
		if again.Proof = a.Proof; again != a {
			t.Fatalf("%+v became %+v", a, again)
		}
	})
}
