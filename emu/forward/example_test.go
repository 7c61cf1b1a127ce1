package forward_test

import (
	"fmt"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/emu/traffic"
)

func Example() {
	net := emu.New(emu.Options{Virtual: true})
	defer net.Close()
	sink := &traffic.Sink{}
	a := net.Router("a", &traffic.Source{
		From: netip.MustParseAddr("fd00:a::1"), To: []netip.Addr{netip.MustParseAddr("fd00:b::1")}, Size: 1000, Gap: time.Millisecond, Count: 100,
	})
	f, err := forward.New(forward.Config{Addresses: []netip.Addr{netip.MustParseAddr("fd00::1")}})
	if err != nil {
		panic(err)
	}
	r, b := net.Router("r", f), net.Router("b", sink)
	net.Link(a, r, [2]emu.Params{}) // port 0 of r
	net.Link(r, b, [2]emu.Params{}) // port 1
	f.SetRoutes([]forward.Route{
		forward.To(netip.MustParsePrefix("fd00:a::/32"), 0), forward.To(netip.MustParsePrefix("fd00:b::/32"), 1),
	})
	net.Run(50 * time.Millisecond)
	f.Delete(netip.MustParsePrefix("fd00:b::/32"))
	net.Run(time.Second)
	fmt.Println(sink.Packets, "arrived,", f.Counters().Drops[forward.NoRoute], "found no route")
	// Output: 51 arrived, 49 found no route
}
