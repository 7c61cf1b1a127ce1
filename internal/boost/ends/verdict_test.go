package ends

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/packet/checksum"
	"scaffold.dev/scaffold/internal/packet/segment"
	"scaffold.dev/scaffold/internal/tests/safety"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

// told is of an end host that has sent 100 bytes which are at the other agent, and for which that one keeps 1000 to 2000.
func told() frame.Takeover {
	return frame.Takeover{Arrived: 100, Kept: frame.Range{From: 1000, To: 2000},
		Host: frame.Options{Sequence: 0xffffffff - 50}, Own: frame.Options{Sequence: 0xffffffff - 1200}} // both wrap
}

// at is a segment of the end host, with offsets.
func at(m frame.Takeover, sent, received uint64, length uint32, flags byte) heard {
	return heard{seq: m.Host.Sequence + 1 + uint32(sent), ack: m.Own.Sequence + 1 + uint32(received), length: length, flags: flags}
}

func TestWhatAnEndHostSaysDecides(t *testing.T) {
	safety.Test(t, safety.Bytes)
	m, begin := told(), time.Unix(1, 0)
	type step struct {
		h     heard
		after time.Duration
		want  verdict
	}
	ack := func(sent, received uint64) heard { return at(m, sent, received, 0, flagACK) }
	for name, steps := range map[string][]step{
		"it has sent nothing more, and says so twice": {{ack(100, 1500), 0, again}, {ack(100, 1500), 0, goesOn}},
		"it has all that is kept":                     {{ack(100, 2000), 0, again}, {ack(100, 2000), 0, goesOn}},
		"it has the FIN, too":                         {{ack(100, 2001), 0, lost}},
		"it has more than there is":                   {{ack(100, 900_000), 0, lost}},
		"a segment of before":                         {{ack(100, 999), 0, unknown}, {ack(90, 1000), 0, unknown}},
		"it sends again what was not acknowledged":    {{ack(130, 1500), 0, unknown}, {at(m, 100, 1500, 30, flagACK), 200 * time.Millisecond, goesOn}},
		"it sends again, from before on":              {{at(m, 90, 1500, 40, flagACK), 0, goesOn}},
		"it sends its FIN again":                      {{at(m, 100, 1500, 1, flagACK|flagFIN), 0, goesOn}},
		"what it sent is nowhere":                     {{ack(130, 1500), 0, unknown}, {ack(130, 1500), proves - 1, unknown}, {ack(130, 1500), proves, lost}},
		"it goes on behind what is nowhere":           {{at(m, 130, 1500, 30, flagACK), 0, unknown}, {at(m, 160, 1500, 30, flagACK), proves, lost}},
		"a segment of keepalive that lies about it":   {{ack(100, 1500), 0, again}, {ack(101, 1500), 0, unknown}, {ack(100, 1500), 0, unknown}, {ack(101, 1500), proves, lost}},
		"it has no such connection":                   {{at(m, 100, 0, 0, flagRST), 0, gone}},
		"an RST of another one":                       {{at(m, 7000, 0, 0, flagRST), 0, unknown}},
		"a SYN":                                       {{at(m, 100, 1500, 0, flagSYN), 0, unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			j := judge{ask: m}
			for i, s := range steps {
				if got := j.take(begin.Add(s.after), s.h); got != s.want {
					t.Errorf("segment %d: verdict %d, want %d", i, got, s.want)
				}
			}
			if steps[len(steps)-1].want == goesOn && (j.wants() < 1500 || j.wants() > 2000) {
				t.Errorf("it wants %d", j.wants())
			}
		})
	}
}

// An end host under any agent: it sends, is acknowledged and sends again, and what of it has arrived at the other agent was
// acknowledged or not. Whatever it says, in whatever order, no verdict is that it goes on where bytes are nowhere.
func TestNobodyGoesOnWhereBytesAreNowhere(t *testing.T) {
	safety.Test(t, safety.Bytes)
	rapid.Check(t, func(t *rapid.T) {
		m := told()
		m.Host.Sequence, m.Own.Sequence = rapid.Uint32().Draw(t, "sequence"), rapid.Uint32().Draw(t, "own")
		arrived := uint64(rapid.IntRange(0, 50).Draw(t, "arrived"))
		acknowledged := uint64(rapid.IntRange(0, 60).Draw(t, "acknowledged"))
		sent := max(acknowledged, arrived) + uint64(rapid.IntRange(0, 20).Draw(t, "on its way"))
		m.Arrived = arrived
		received := uint64(rapid.IntRange(1000, 2000).Draw(t, "received"))
		j, now := judge{ask: m}, time.Unix(1, 0)
		answered := false // the question before this segment
		for range rapid.IntRange(1, 20).Draw(t, "segments") {
			now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond)
			var h heard
			kinds := []string{"answer"}
			if acknowledged < sent {
				kinds = append(kinds, "again")
			}
			if answered || j.answers == 0 { // one of its own accord comes between answers, not in their place
				kinds = append(kinds, "keepalive")
			}
			switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
			case "answer":
				h, answered = at(m, sent, received, 0, flagACK), true
			case "again":
				h = at(m, acknowledged, received, uint32(rapid.Uint64Range(1, sent-acknowledged).Draw(t, "bytes")), flagACK)
			case "keepalive":
				h, answered = at(m, acknowledged-1, received, 0, flagACK), false
			}
			switch v := j.take(now, h); {
			case v == goesOn && acknowledged > arrived:
				t.Fatalf("%d bytes have arrived, %d were acknowledged, %d sent, and %+v is said to prove that nothing is lost", arrived, acknowledged, sent, h)
			case v == goesOn && j.wants() != received:
				t.Fatalf("it wants %d, has %d", j.wants(), received)
			case v == goesOn || v == lost:
				return
			}
		}
	})
}

// A packet is read as it was made, whatever of it is cut off.
func TestAQuestionIsReadAsItIs(t *testing.T) {
	for _, of := range families {
		m := told()
		m.Host.HasTimestamps, m.Own.HasTimestamps, m.Host.Timestamp = true, true, 77
		p := pair{addrPortOf(of.server, 80), addrPortOf(of.client, 40000)}
		j := judge{ask: m}
		b := j.question(p)
		got, h, ok := hear(b)
		if want := (pair{p.remote, p.local}); !ok || got != want || h.seq != j.sequence(999) || h.ack != j.expects() || h.length != 1 || h.flags != flagACK|flagPSH || !h.echoes || h.echo != 77 {
			t.Errorf("%s: %v, %+v, %v", of.name, got, h, ok)
		}
		s, err := segment.Parse(append(append(make([]byte, 12), map[bool][]byte{true: {8, 0}, false: {0x86, 0xdd}}[of.name == "IPv4"]...), b...))
		if err != nil {
			t.Fatal(err)
		}
		if got := checksum.Transport(s.Src, s.Dst, protoTCP, s.Frame[s.L4:]); got != 0xffff {
			t.Errorf("%s: the checksum is wrong: %#x", of.name, got)
		}
	}
}

func FuzzHear(f *testing.F) {
	for _, of := range families {
		j := judge{ask: told()}
		f.Add(j.question(pair{addrPortOf(of.server, 80), addrPortOf(of.client, 40000)}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, h, ok := hear(b); ok && h.length > 1<<16+1 {
			t.Errorf("%+v", h)
		}
	})
}

func addrPortOf(address string, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(address), port)
}
