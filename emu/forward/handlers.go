package forward

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"scaffold.dev/scaffold/emu"
)

// Handlers are what can be read and set of a running router.
func (f *Forwarder) Handlers(r *emu.Router) map[string]emu.Handler {
	if f.router != r {
		f.prepare(r)
	}
	return map[string]emu.Handler{
		"routes":     {Get: f.listRoutes, Set: f.setRoute, Doc: "routes; set: PREFIX [via ADDRESS] port N [or ...], blackhole PREFIX, unreachable PREFIX, delete PREFIX"},
		"mode":       {Get: func() (string, error) { return f.Mode(), nil }, Set: f.SetMode, Doc: "how a packet's way is found: lpm, or class where classes were compiled"},
		"table":      {Get: f.listTable, Doc: "all that the router looks up, its own addresses and ports among it, with the adjacencies"},
		"lookup":     {Get: f.found, Set: f.find, Doc: "where packets to an address go; set: the address"},
		"drops":      {Get: f.listDrops, Doc: "packets dropped, and ICMP errors sent about them, by reason"},
		"icmp":       {Get: f.listICMP, Doc: "what the router itself sent"},
		"icmp-rate":  {Get: f.rate, Set: f.setRate, Doc: "ICMP errors a second at most; -1 for none"},
		"neighbours": {Get: f.listNeighbours, Set: f.flushNeighbours, Doc: "hosts beyond LAN ports; set: flush"},
		"ports":      {Get: f.listPorts, Doc: "addresses and MTU of the ports, and whether they are up"},
	}
}

func (f *Forwarder) listRoutes() (string, error) {
	var b strings.Builder
	for _, r := range f.Routes() {
		fmt.Fprintln(&b, r)
	}
	return b.String(), nil
}

// setRoute changes one route as a person writes it.
func (f *Forwarder) setRoute(s string) error {
	words := strings.Fields(s)
	if len(words) == 2 && words[0] == "delete" {
		p, err := netip.ParsePrefix(words[1])
		if err != nil {
			return fmt.Errorf("delete %s: expected a prefix such as fd00::/64", words[1])
		}
		if !f.Delete(p) {
			return fmt.Errorf("delete %v: there is no such route", p)
		}
		return nil
	}
	r, err := ParseRoute(s)
	if err != nil {
		return err
	}
	return f.Add(r)
}

func (f *Forwarder) listTable() (string, error) {
	var b strings.Builder
	for p, h := range f.table.All() {
		fmt.Fprintf(&b, "%v %s\n", p, f.describe(int(h)))
	}
	return b.String(), nil
}

// describe is an adjacency in words.
func (f *Forwarder) describe(h int) string {
	switch a := f.all[h]; a.kind {
	case toSelf:
		return "local"
	case toWire, toLAN, toDown:
		return f.describeHop(h)
	case toGroup:
		var all []string
		for _, m := range f.groups[a.more].members {
			all = append(all, f.describeHop(int(m)))
		}
		return strings.Join(all, " or ")
	default:
		return refusals[a.kind].String()
	}
}

func (f *Forwarder) describeHop(h int) string {
	n := f.targets[h].hop
	s := fmt.Sprint("port ", n.Port)
	if n.Via.IsValid() {
		s = fmt.Sprintf("via %v port %d", n.Via, n.Port)
	}
	if f.all[h].kind == toDown {
		s += " (down)"
	}
	return s
}

func (f *Forwarder) find(s string) error {
	a, err := netip.ParseAddr(strings.TrimSpace(s))
	if err != nil {
		return fmt.Errorf("lookup %q: expected an address such as fd00::1", s)
	}
	f.asked = a
	return nil
}

func (f *Forwarder) found() (string, error) {
	if !f.asked.IsValid() {
		return "", fmt.Errorf("lookup: no address was set; set one first, such as fd00::1")
	}
	return fmt.Sprintf("%v %s", f.asked, f.describe(int(f.table.Lookup(f.asked)))), nil
}

func (f *Forwarder) listDrops() (string, error) {
	var b strings.Builder
	for i := range Reasons {
		fmt.Fprintf(&b, "%s %d told %d\n", strings.ReplaceAll(i.String(), " ", "-"), f.counters.Drops[i], f.counters.Told[i])
	}
	return b.String(), nil
}

func (f *Forwarder) listICMP() (string, error) {
	c := &f.counters
	sent := uint64(0)
	for _, n := range c.Told {
		sent += n
	}
	return fmt.Sprintf("errors %d\nlimited %d\nmute %d\nechoes %d\nresets %d\nsolicitations %d\nadvertisements %d\nfragmented %d\n",
		sent, c.Limited, c.Mute, c.Echoes, c.Resets, c.Solicited, c.Answers, c.Fragmented), nil
}

func (f *Forwarder) rate() (string, error) { return strconv.Itoa(f.bucket.rate), nil }

func (f *Forwarder) setRate(s string) error {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < -1 || n > 1e6 {
		return fmt.Errorf("icmp-rate %q: expected a number a second up to 1000000, 0 for the default of %d, -1 for none", s, DefaultICMPRate)
	}
	f.bucket.set(n)
	return nil
}

func (f *Forwarder) listNeighbours() (string, error) {
	var b strings.Builder
	now := f.router.Now()
	for _, n := range f.neighbours.old {
		state := "reachable"
		switch {
		case !n.known:
			state = "incomplete"
		case now >= n.until && n.due != emu.Never:
			state = "probed"
		case now >= n.until:
			state = "stale"
		}
		fmt.Fprintf(&b, "%v port %d %s", n.key.address, n.key.port, state)
		if n.known {
			fmt.Fprint(&b, " ", net.HardwareAddr(n.mac[:]))
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

func (f *Forwarder) flushNeighbours(s string) error {
	if strings.TrimSpace(s) != "flush" {
		return fmt.Errorf("neighbours %q: expected flush", s)
	}
	for len(f.neighbours.old) > 0 {
		f.forget(f.neighbours.old[0])
	}
	return nil
}

func (f *Forwarder) listPorts() (string, error) {
	var b strings.Builder
	for i := range f.ports {
		p := &f.ports[i]
		state, kind := "up", "wire"
		if !p.up {
			state = "down"
		}
		if p.lan {
			kind = "lan"
		}
		fmt.Fprintf(&b, "%d %s %s to %s mtu %d %v", i, state, kind, p.Far().Name(), p.mtu, p.linkLocal)
		for _, a := range p.addresses {
			fmt.Fprint(&b, " ", a)
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}
