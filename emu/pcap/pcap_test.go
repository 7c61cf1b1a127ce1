package pcap_test

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/pcap"
	"scaffold.dev/scaffold/emu/traffic"
)

// record captures a source's packets behind a link that delays and loses some.
func record(t testing.TB) (file []byte, sink *traffic.Sink) {
	t.Helper()
	n := emu.New(emu.Options{Virtual: true})
	t.Cleanup(func() { n.Close() })
	sink = &traffic.Sink{}
	a := n.Router("a", &traffic.Source{
		From: netip.MustParseAddr("fd00::1"), To: []netip.Addr{netip.MustParseAddr("fd00::2"), netip.MustParseAddr("fd00::3")},
		Size: 200, Gap: time.Millisecond, Count: 500,
	})
	slow := emu.Params{Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond, Unordered: true, Loss: 0.1}
	link, err := n.Link(a, n.Router("b", sink), [2]emu.Params{slow, slow})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Run(0); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c, err := pcap.Start(&out, link, time.Unix(1_800_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	if missed, err := c.Stop(); missed > 0 || err != nil {
		t.Fatalf("%d missed, %v", missed, err)
	}
	return out.Bytes(), sink
}

func TestWhatIsRecordedCanBePlayed(t *testing.T) {
	file, recorded := record(t)
	frames, err := pcap.Read(bytes.NewReader(file), 2)
	if err != nil {
		t.Fatal(err)
	}
	if uint64(len(frames)) != recorded.Packets {
		t.Fatalf("%d frames in the file, %d arrived", len(frames), recorded.Packets)
	}
	n := emu.New(emu.Options{Virtual: true})
	t.Cleanup(func() { n.Close() })
	sink := &traffic.Sink{}
	link, err := n.Link(n.Router("far", &traffic.Sink{}), n.Router("sink", sink), [2]emu.Params{})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Run(0); err != nil {
		t.Fatal(err)
	}
	player, err := n.Play(link.Ports()[1], frames)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	if arrived, lost := player.Stop(); arrived != len(frames) || lost != 0 || sink.Bytes != recorded.Bytes {
		t.Errorf("%d played, %d lost, %d bytes of %d", arrived, lost, sink.Bytes, recorded.Bytes)
	}
	if took, want := sink.Last-sink.First, (recorded.Last-recorded.First)/2; took != want {
		t.Errorf("it took %v, want %v", took, want)
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	file, _ := record(t)
	for what, c := range map[string]struct{ text, want string }{
		"empty":    {"", "shorter than any pcap file"},
		"text":     {"nodes: {r1: router, r2: router}", "not a pcap or pcapng file"},
		"cut":      {string(file[:len(file)-10]), "frame"},
		"radio":    {string(file[:20]) + "\x7f\x00\x00\x00" + string(file[24:]), "expected Ethernet"},
		"snapshot": {string(file[:36]) + "\xff" + string(file[37:]), "of its"},
	} {
		if _, err := pcap.Read(strings.NewReader(c.text), 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := pcap.Read(bytes.NewReader(file), 0); err == nil {
		t.Error("speed 0 was taken")
	}
}

func FuzzRead(f *testing.F) {
	file, _ := record(f)
	f.Add(file[:500])
	f.Add([]byte("\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x1c\x00\x00\x00"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		pcap.Read(bytes.NewReader(b), 1) // it must not panic
	})
}
