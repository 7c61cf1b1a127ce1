package emu_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/traffic"
)

// A maker makes packets both ways, until there is no memory.
type maker struct {
	t     *testing.T
	texts [][]byte
	run   [40]emu.Packet
}

func (m *maker) Process(*emu.Router, []emu.Packet) {}

func (m *maker) Wake(r *emu.Router, _ time.Duration) time.Duration {
	var patterns []emu.Pattern
	for _, b := range m.texts {
		patterns = append(patterns, emu.NewPattern(b))
	}
	if n := r.Copy(m.run[:], patterns); n != len(patterns) {
		m.t.Fatalf("%d packets of %d patterns", n, len(patterns))
	}
	for i := range patterns {
		p, _ := r.New(m.texts[i])
		if got := m.run[i]; !bytes.Equal(r.Frame(&got), r.Frame(&p)) || got.Hop != p.Hop || got.IPv6() != p.IPv6() || got.Near() != p.Near() || got.Len() != p.Len() {
			m.t.Errorf("a pattern makes %+v, New %+v", got, p)
		}
		r.Release(p)
	}
	for i := range m.run {
		if i >= len(patterns) {
			patterns = append(patterns, patterns[0])
		}
	}
	var rest [40]emu.Packet
	n := r.Copy(rest[:], patterns)
	if c := r.Counters(); n >= len(rest) || c.Starved != uint64(len(rest)-n) {
		m.t.Errorf("%d packets in a memory for few; the counters say %+v", n, c)
	}
	r.SendAll(m.run[:len(m.texts)], 0)
	r.SendAll(rest[:n], emu.Drop)
	r.SendAll(nil, 0)
	return emu.Never
}

func TestPatternsMakeWhatNewMakes(t *testing.T) {
	m := &maker{t: t}
	for _, to := range []string{"fd00::2", "10.0.0.2", "ff02::1", "fe80::1"} {
		from := netip.MustParseAddr("fd00::1")
		if netip.MustParseAddr(to).Is4() {
			from = netip.MustParseAddr("10.0.0.1")
		}
		m.texts = append(m.texts, traffic.Datagram(from, netip.MustParseAddr(to), 7, 9, 80))
	}
	net := emu.New(emu.Options{Virtual: true, Memory: emu.Memory{Small: 32, Large: 1}})
	defer net.Close()
	sink := &traffic.Sink{}
	if _, err := net.Link(net.Router("a", m), net.Router("b", sink), [2]emu.Params{}); err != nil {
		t.Fatal(err)
	}
	if err := net.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	if sink.Packets != uint64(len(m.texts)) {
		t.Errorf("%d packets arrived of %d", sink.Packets, len(m.texts))
	}
}
