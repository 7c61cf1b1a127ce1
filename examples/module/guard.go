// Guard is a module of Scaffold's controller that blocks hosts: OpenFlow switches drop what they send and what
// is sent to them, wherever they are, and the network's events tell who tries.
//
//	GUARD_BLOCK=h2,h7 guard controld --openflow tcp:[::]:6653
//
// It lives in a Go module of its own, as yours would.
package main

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/controller/run"
)

func main() { run.Main(newGuard(os.Getenv("GUARD_BLOCK"))) }

// How often it tells who tries, and how many packets a second a switch shows it.
const (
	tellEvery = 10 * time.Second
	showRate  = 10
)

const etherIPv6 = 0x86dd // this is a Go module of its own, which sees nothing of Scaffold's internal packages

// A guard blocks hosts. Only the module's goroutine touches it, so it needs no locks.
type guard struct {
	net      controller.Network
	blocked  map[string]bool           // by name
	locators map[string][]netip.Prefix // of those, where they are now
	switches map[string]bool
	tries    map[string]int // packets seen of each since it was told
}

func newGuard(names string) *guard {
	g := &guard{blocked: map[string]bool{}, locators: map[string][]netip.Prefix{}, switches: map[string]bool{}, tries: map[string]int{}}
	for _, name := range strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' }) {
		g.blocked[name] = true
	}
	return g
}

// Name implements controller.Module.
func (*guard) Name() string { return "guard" }

// Start implements controller.Module.
func (g *guard) Start(n controller.Network) error {
	g.net = n
	n.HandleHosts(g.host)
	n.HandleSwitches(g.sw)
	n.Every(tellEvery, g.tell)
	return nil
}

// host follows the blocked ones: a host that moves has another locator.
func (g *guard) host(h controller.Host) {
	if !g.blocked[h.Name] {
		return
	}
	var now []netip.Prefix
	for _, p := range h.Places {
		now = append(now, p.Locator)
	}
	if h.State == "gone" || slices.Equal(now, g.locators[h.Name]) {
		return // what is gone may come back where it was
	}
	for i, l := range now {
		// The switch shows a few of the packets that the subscription takes, and drops all of them.
		err := g.net.Subscribe(controller.Subscription{Name: fmt.Sprint(h.Name, i), Match: from(l), Rate: showRate, First: true}, func(controller.Packet) { g.tries[h.Name]++ })
		if err != nil {
			g.net.Report(h.Name, "cannot watch it: "+err.Error())
		}
	}
	for i := len(now); i < len(g.locators[h.Name]); i++ {
		g.net.Subscribe(controller.Subscription{Name: fmt.Sprint(h.Name, i)}, nil) // of an uplink that is gone: taken back
	}
	g.locators[h.Name] = now
	g.net.Report(h.Name, fmt.Sprintf("blocked at %v", now))
	for name := range g.switches {
		g.block(name)
	}
}

func (g *guard) sw(s controller.Switch) {
	if !g.switches[s.Name] { // rules are kept for a switch that goes and comes
		g.switches[s.Name] = true
		g.block(s.Name)
	}
}

// block has a switch drop what goes to blocked hosts; what they send their subscriptions take.
func (g *guard) block(at string) {
	var flows []controller.Flow
	for _, name := range slices.Sorted(maps.Keys(g.locators)) {
		for _, l := range g.locators[name] {
			flows = append(flows, controller.Flow{Priority: 100, First: true, Match: to(l), Instructions: controller.Apply()})
		}
	}
	if err := g.net.SetFlows(at, flows); err != nil {
		g.net.Report(at, "cannot block: "+err.Error())
	}
}

func (g *guard) tell() {
	for _, name := range slices.Sorted(maps.Keys(g.tries)) {
		g.net.Report(name, fmt.Sprintf("sent at least %d packets that were dropped", g.tries[name]))
	}
	clear(g.tries)
}

func from(l netip.Prefix) controller.Match {
	return controller.Match{controller.Uint(controller.EthType, etherIPv6), controller.Prefix(controller.IPv6Src, l)}
}

func to(l netip.Prefix) controller.Match {
	return controller.Match{controller.Uint(controller.EthType, etherIPv6), controller.Prefix(controller.IPv6Dst, l)}
}
