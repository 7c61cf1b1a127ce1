package mrt

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/packet/mrt"
)

// all reads a recording to its end.
func all(t *testing.T, b []byte) (records []Record, r *Reader) {
	t.Helper()
	r = NewReader(bytes.NewReader(b))
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return records, r
		}
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
}

func TestUpdatesAndTablesAreRead(t *testing.T) {
	p := &tape{t: t}
	p.table("2001:db8:1::/48")
	p.table("192.0.2.0/24")
	p.update(1500*time.Millisecond, peer, announce("2001:db8:2::/48", 65010))
	p.add(began, mrt.BGP4MP, mrt.STATE_CHANGE_AS4, must(mrt.NewBGP4MPStateChange(1, 2, 0, peer, another, true, mrt.IDLE, mrt.CONNECT)))
	p.update(2*time.Second, another, bgp.NewBGPKeepAliveMessage())
	records, r := all(t, p.bytes)
	if len(records) != 5 || r.Unknown != 2 || r.Bad != 0 {
		t.Fatalf("%d updates, %d unknown, %d bad (%v), want 5, 2, 0", len(records), r.Unknown, r.Bad, r.First)
	}
	if records[1].Peer != another || records[1].AS != 65011 {
		t.Errorf("the second entry is of %v, AS %d", records[1].Peer, records[1].AS)
	}
	if d := records[4].Time.Sub(began); d != 1500*time.Millisecond {
		t.Errorf("the update came after %v, want 1.5 s", d)
	}
}

func TestADamagedRecordIsCountedAndTheRestRead(t *testing.T) {
	p := &tape{t: t}
	p.update(0, peer, announce("192.0.2.0/24", 65010))
	first := len(p.bytes)
	p.update(0, peer, announce("192.0.2.0/24", 65010))
	p.update(0, peer, announce("2001:db8::/32", 65010))
	p.bytes[first+40] = 0 // in the mark that a message of BGP begins with
	records, r := all(t, p.bytes)
	if len(records) != 2 || r.Bad != 1 || !strings.Contains(r.First.Error(), "record 2 at byte") {
		t.Errorf("%d updates, %d bad: %v", len(records), r.Bad, r.First)
	}
}

func TestWhatIsNoRecordingIsRefused(t *testing.T) {
	p := &tape{t: t}
	p.update(0, peer, announce("192.0.2.0/24", 65010))
	for text, want := range map[string]string{
		string(p.bytes[:len(p.bytes)-1]):   "record 1 at byte 0: it is cut off",
		string(p.bytes[:7]):                "it is cut off",
		"\x1f\x8b\x08 this was compressed": "unpack it first",
	} {
		if _, err := NewReader(strings.NewReader(text)).Next(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestUpdatesAreSaidAsOurOwn(t *testing.T) {
	s := Speaker{AS: 70000, ID: peer, NextHop4: netip.MustParseAddr("10.0.0.2"), NextHop6: netip.MustParseAddr("fd00::2")}
	for _, m := range []*bgp.BGPMessage{announce("192.0.2.0/24", 65010), announce("2001:db8::/32", 65010)} {
		u := m.Body.(*bgp.BGPUpdate)
		u.PathAttributes = append(u.PathAttributes, bgp.NewPathAttributeLocalPref(300), bgp.NewPathAttributeCommunities([]uint32{7}))
		out, err := s.rewrite(u)
		if err != nil || len(out) != 1 {
			t.Fatal(out, err)
		}
		b := must(out[0].Serialize())
		back, err := bgp.ParseBGPMessage(b)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, a := range back.Body.(*bgp.BGPUpdate).PathAttributes {
			said = append(said, a.String())
		}
		text := strings.Join(said, " ")
		for _, want := range []string{"70000", "65010", "Communities"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %s", text, want)
			}
		}
		if !strings.Contains(text, "10.0.0.2") && !strings.Contains(text, "fd00::2") || strings.Contains(text, "LocalPref") {
			t.Error(text)
		}
	}
}

func FuzzRead(f *testing.F) {
	p := &tape{t: f}
	p.table("2001:db8:1::/48")
	p.table("192.0.2.0/24")
	p.update(time.Second, peer, announce("192.0.2.0/24", 65010))
	p.update(time.Second, peer, withdraw("2001:db8::/32"))
	f.Add(p.bytes)
	s := Speaker{AS: 70000, ID: peer, NextHop4: netip.MustParseAddr("10.0.0.2"), NextHop6: netip.MustParseAddr("fd00::2")}
	f.Fuzz(func(t *testing.T, b []byte) {
		for r := NewReader(bytes.NewReader(b)); ; {
			record, err := r.Next()
			if err != nil {
				return
			}
			if messages, err := s.rewrite(record.update); err == nil {
				sendable(messages)
			}
		}
	})
}
