package frr

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// frames reads a recording: what a zebra of FRR 8.4.4 sent, one frame in each line.
func frames(t testing.TB, name string) (all [][]byte) {
	t.Helper()
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("netlink was recorded on a little-endian machine")
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(string(text)) {
		b, err := hex.DecodeString(line)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

func recordings(t testing.TB) []string {
	t.Helper()
	names, _ := filepath.Glob("testdata/*.hex") // the pattern is well-formed
	if len(names) == 0 {
		t.Fatal("no recordings in testdata")
	}
	return names
}

// The recordings hold static routes of each kind while a link goes down and comes back, and routes of BGP by two
// links, those for IPv4 by IPv6 neighbours, while one goes down: groups, replacements in one frame, deletions.
func TestRecordedFeedsAreUnderstood(t *testing.T) {
	for _, name := range recordings(t) {
		var got strings.Builder
		table, buf := NewTable(), make([]byte, maxFrame)
		for i, frame := range frames(t, name) {
			body, err := readFrame(bytes.NewReader(frame), buf)
			if err != nil {
				t.Fatalf("%s: frame %d: %v", name, i, err)
			}
			messages, err := Parse(nil, body)
			if err != nil {
				t.Fatalf("%s: frame %d: %v", name, i, err)
			}
			for _, m := range messages {
				table.Apply(m)
				fmt.Fprintf(&got, "%d %s\n", i, describe(m))
			}
			for _, c := range table.Changes(nil) {
				fmt.Fprintf(&got, "%d => %v\n", i, c)
			}
		}
		golden(t, strings.TrimSuffix(name, ".hex")+".golden", got.String())
	}
}

func describe(m Message) string {
	verb := "new"
	if m.Delete {
		verb = "delete"
	}
	if m.Hop != nil {
		return fmt.Sprintf("%s hop %d: %v blackhole %v group %v", verb, m.Hop.ID, m.Hop.Via, m.Hop.Blackhole, m.Hop.Group)
	}
	r := m.Route
	return fmt.Sprintf("%s route %v: %v by %d table %d metric %d hop %d via %v", verb, r.Prefix, r.Kind, r.Protocol, r.Table, r.Metric, r.HopID, r.Via)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; -update writes it anew. Got:\n%s", name, got)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range recordings(f) {
		for _, frame := range frames(f, name) {
			f.Add(frame[frameLen:])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		messages, _ := Parse(nil, b)
		table := NewTable()
		for _, m := range messages {
			table.Apply(m)
		}
		for _, c := range table.Changes(nil) {
			if !c.Prefix.IsValid() || c.Prefix != c.Prefix.Masked() || (c.Kind == Unicast) != (len(c.Via) != 0) {
				t.Errorf("change %v", c)
			}
		}
		table.Mark()
		table.Sweep()
		table.Changes(nil)
		if table.Len() != 0 {
			t.Errorf("%d routes are left after a replay of none", table.Len())
		}
	})
}

func TestBytesThatAreNoFeedAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"02010004":                "version 2, want 1",
		"01020004":                "load zebra's module dplane_fpm_nl",
		"01010003":                "frame of 3 bytes",
		"01010010" + "0000":       "cut off",
		"0101000c" + "0102030405": "cut off",
	} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readFrame(bytes.NewReader(b), make([]byte, maxFrame)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
