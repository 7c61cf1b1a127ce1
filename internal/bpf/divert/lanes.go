package divert

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"
)

// A Lane says which connections are an agent's: by prefixes of client and server, the server's port, and the low bits of
// the client's.
type Lane struct {
	Number         uint64
	Client, Server netip.Prefix
	Port           uint16 // of the server; 0: any
	Slot           uint16 // the SlotBits low bits of the client's port
	SlotBits       uint8  // 0: all of the client's ports
}

// maxRules is MAX_RULES.
const maxRules = 64

func (l Lane) check() error {
	client, server := l.Client, l.Server
	switch {
	case !client.IsValid() || client != client.Masked() || client.Addr().Is4In6():
		return fmt.Errorf("lane %d: the client's prefix is %v, expected one without bits behind it", l.Number, client)
	case !server.IsValid() || server != server.Masked() || server.Addr().Is4In6():
		return fmt.Errorf("lane %d: the server's prefix is %v, expected one without bits behind it", l.Number, server)
	case client.Addr().Is4() != server.Addr().Is4():
		return fmt.Errorf("lane %d: %v and %v are of different families", l.Number, client, server)
	case l.SlotBits > 16:
		return fmt.Errorf("lane %d: a slot of %d bits, expected up to 16", l.Number, l.SlotBits)
	case l.Slot&^l.mask() != 0:
		return fmt.Errorf("lane %d: slot %d has more than %d bits", l.Number, l.Slot, l.SlotBits)
	}
	return nil
}

func (l Lane) mask() uint16 { return uint16(1<<l.SlotBits - 1) }

// order is which of two lanes comes first where a connection fits both.
func order(a, b Lane) int {
	port := func(l Lane) int { return min(int(l.Port), 1) }
	return cmp.Or(cmp.Compare(b.Server.Bits(), a.Server.Bits()), cmp.Compare(b.Client.Bits(), a.Client.Bits()),
		cmp.Compare(port(b), port(a)), cmp.Compare(b.SlotBits, a.SlotBits), cmp.Compare(a.Number, b.Number))
}

// lanes is what the maps hold: entries of this generation and of the one before.
type lanes struct {
	generation, class uint32
	now, before       entries
}

type entries struct {
	servers []divertServerKey
	clients []divertClientKey
}

// Stops are the versions of IP, 4 and 6, of which packets that are not the agent's own would end at this machine.
func (d *Diverter) Stops() ([]uint32, error) { return d.net.stops() }

// SetLanes replaces all lanes in one step: a SYN meets those before or these. On an error those before stay.
func (d *Diverter) SetLanes(all []Lane) error {
	for _, l := range all {
		if err := l.check(); err != nil {
			return err
		}
	}
	all = slices.SortedFunc(slices.Values(all), order)
	// Packets under way may still read what was before: it goes only now that it is another generation older.
	if err := d.remove(d.lanes.before); err != nil {
		return err
	}
	d.lanes.before = entries{}
	next, err := d.write(d.lanes.generation+1, all)
	if err == nil {
		err = d.objs.Generation.Put(uint32(0), d.lanes.generation+1)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("lanes: %w", err), d.remove(next))
	}
	d.lanes.generation++
	d.lanes.before, d.lanes.now = d.lanes.now, next
	return nil
}

// write writes a class for each server prefix, and in it, for each client prefix, the rules of all lanes that hold both.
// all is in order.
func (d *Diverter) write(generation uint32, all []Lane) (entries, error) {
	var made entries
	for _, server := range prefixes(all, func(l Lane) netip.Prefix { return l.Server }) {
		d.lanes.class++
		of := within(all, server, func(l Lane) netip.Prefix { return l.Server })
		for _, client := range prefixes(of, func(l Lane) netip.Prefix { return l.Client }) {
			rules, err := rulesOf(within(of, client, func(l Lane) netip.Prefix { return l.Client }))
			if err != nil {
				return made, fmt.Errorf("from %v to %v: %w", client, server, err)
			}
			key := divertClientKey{Prefixlen: 32 + mappedBits(client), Class: d.lanes.class, Addr: client.Addr().As16()}
			if err := d.objs.Clients.Put(key, rules); err != nil {
				return made, fmt.Errorf("client prefix %v: %w", client, full(err))
			}
			made.clients = append(made.clients, key)
		}
		key := divertServerKey{Prefixlen: 64 + mappedBits(server), Generation: generation, Family: family(server), Addr: server.Addr().As16()}
		if err := d.objs.Servers.Put(key, d.lanes.class); err != nil {
			return made, fmt.Errorf("server prefix %v: %w", server, full(err))
		}
		made.servers = append(made.servers, key)
	}
	return made, nil
}

// prefixes are those that lanes have, each once.
func prefixes(all []Lane, of func(Lane) netip.Prefix) (each []netip.Prefix) {
	seen := map[netip.Prefix]bool{}
	for _, l := range all {
		if p := of(l); !seen[p] {
			seen[p] = true
			each = append(each, p)
		}
	}
	return each
}

// within are the lanes whose prefix holds all of p.
func within(all []Lane, p netip.Prefix, of func(Lane) netip.Prefix) (some []Lane) {
	for _, l := range all {
		if has := of(l); has.Bits() <= p.Bits() && has.Contains(p.Addr()) {
			some = append(some, l)
		}
	}
	return some
}

func rulesOf(all []Lane) (r divertRules, err error) {
	if len(all) > maxRules {
		return r, fmt.Errorf("%d lanes between two prefixes, expected up to %d: make fewer slots", len(all), maxRules)
	}
	for i, l := range all {
		r.Rule[i] = divertRule{Lane: l.Number, Port: l.Port, Mask: l.mask(), Slot: l.Slot}
	}
	r.Count = uint32(len(all))
	return r, nil
}

// mappedBits are the bits of a prefix whose IPv4 addresses are ::ffff:a.b.c.d.
func mappedBits(p netip.Prefix) uint32 {
	if p.Addr().Is4() {
		return uint32(96 + p.Bits())
	}
	return uint32(p.Bits())
}

func family(p netip.Prefix) uint32 {
	if p.Addr().Is4() {
		return 4
	}
	return 6
}

func (d *Diverter) remove(e entries) error {
	var errs []error
	for _, k := range e.servers {
		errs = append(errs, missing(d.objs.Servers.Delete(k)))
	}
	for _, k := range e.clients {
		errs = append(errs, missing(d.objs.Clients.Delete(k)))
	}
	return errors.Join(errs...)
}

func missing(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

// full names the reason that a map gives where it has no room.
func full(err error) error {
	return fmt.Errorf("%w (is the table full? join lanes of neighbouring prefixes)", err)
}
