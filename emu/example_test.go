package emu_test

import (
	"fmt"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/traffic"
)

// A hub sends what comes by one port out of the next one.
type hub struct{}

func (hub) Process(r *emu.Router, batch []emu.Packet) {
	for i := range batch {
		batch[i].Port = (batch[i].Port + 1) % uint16(len(r.Ports()))
	}
}

func Example() {
	net := emu.New(emu.Options{Virtual: true})
	defer net.Close()
	sink := &traffic.Sink{}
	a := net.Router("a", &traffic.Source{
		From: netip.MustParseAddr("fd00::1"), To: []netip.Addr{netip.MustParseAddr("fd00::2")},
		Size: 1000, Gap: time.Millisecond, Count: 10_000,
	})
	h, b := net.Router("h", hub{}), net.Router("b", sink)
	slow := emu.Params{Delay: 20 * time.Millisecond, Loss: 0.01, Seed: 7}
	net.Link(a, h, [2]emu.Params{slow, slow})
	net.Link(h, b, [2]emu.Params{})
	net.Run(time.Minute)
	fmt.Println(sink.Packets, "arrived, the first after", sink.First)
	// Output: 9893 arrived, the first after 20ms
}
