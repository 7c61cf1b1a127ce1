package lane

import (
	"cmp"
	"net/netip"
	"slices"
)

// A Place is the port of a switch at which an agent is, and the agent's hardware address there.
type Place struct {
	Switch, Port string
	MAC          [6]byte
}

// A Steering is what rules of switches follow from.
type Steering struct {
	Lanes    []Lane // of whose agents, Near and the first of Far, switches are to send them what they carry
	Sessions []Session
	Places   map[string]Place // of agents at switches, by name; others are on the way of what they carry
}

// Ports are those that are equal to Value in the bits of Mask.
type Ports struct{ Value, Mask uint16 }

// A Kind tells rules that may hold for the same packet.
type Kind uint8

const (
	// Answers go to the far agent of a lane.
	Answers Kind = iota
	// Requests go to its near one. They come first: two entries may lead both ways between two prefixes.
	Requests
	// Pinned are packets of one connection, which stays at its agent whatever becomes of its lane.
	Pinned
)

// A Rule sends TCP segments from Source to Destination, which come to a switch by any port but those of agents, to an agent.
type Rule struct {
	Place
	Agent               string
	Kind                Kind
	Lane                uint64 // 0: of a pinned connection whose lane is gone
	Source, Destination netip.Prefix
	From, To            Ports
}

// Steer are the rules of all switches, by switch, kind, lane and packets: the same for the same steering.
func Steer(s Steering) (rules []Rule) {
	lanes := make(map[uint64]*Lane, len(s.Lanes))
	for i := range s.Lanes {
		l := &s.Lanes[i]
		lanes[l.Number] = l
		if l.Rewrite {
			continue
		}
		slot := Ports{l.Slot, uint16(1)<<l.Bits - 1}
		if at, is := s.Places[l.Near]; is {
			rules = append(rules, Rule{Place: at, Agent: l.Near, Kind: Requests, Lane: l.Number, Source: l.Client, Destination: l.Server, From: slot, To: exactly(l.Port)})
		}
		if at, is := s.Places[l.Far[0]]; is {
			rules = append(rules, Rule{Place: at, Agent: l.Far[0], Kind: Answers, Lane: l.Number, Source: l.Server, Destination: l.Client, From: exactly(l.Port), To: slot})
		}
	}
	for i := range s.Sessions {
		rules = append(rules, s.Sessions[i].pins(lanes[s.Sessions[i].Lane], s.Places)...)
	}
	slices.SortFunc(rules, compare)
	return rules
}

// exactly are that port alone; of 0 any.
func exactly(port uint16) Ports {
	if port == 0 {
		return Ports{}
	}
	return Ports{port, 0xffff}
}

// pins are the rules for a connection whose agents are others than those of its lane now, or whose lane is gone.
func (s *Session) pins(l *Lane, places map[string]Place) (rules []Rule) {
	mine := l != nil && !l.Rewrite && l.Takes(s.Client, s.Server)
	at, is := places[s.Near]
	if is && !(mine && l.Near == s.Near) {
		rules = append(rules, s.pin(at, s.Near, s.Client, s.Server))
	}
	at, is = places[s.Far]
	if is && !(mine && l.Far[0] == s.Far) {
		rules = append(rules, s.pin(at, s.Far, s.Server, s.Client))
	}
	return rules
}

func (s *Session) pin(at Place, agent string, from, to netip.AddrPort) Rule {
	one := func(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
	return Rule{Place: at, Agent: agent, Kind: Pinned, Lane: s.Lane, Source: one(from.Addr()), Destination: one(to.Addr()), From: exactly(from.Port()), To: exactly(to.Port())}
}

// Takes reports whether a connection is of the lane.
func (l *Lane) Takes(client, server netip.AddrPort) bool {
	mask := uint16(1)<<l.Bits - 1
	return l.Client.Contains(client.Addr()) && l.Server.Contains(server.Addr()) && (l.Port == 0 || l.Port == server.Port()) && client.Port()&mask == l.Slot
}

// Kept reports whether a connection is at the agents of a lane, so that it needs no pin. A lane that is rewritten keeps none: one
// that was steered before has to be so until it ends.
func (l *Lane) Kept(s *Session) bool {
	return !l.Rewrite && l.Takes(s.Client, s.Server) && l.Near == s.Near && l.Far[0] == s.Far
}

// Same reports whether two lanes are of the same connections in the same mode, whoever carries them.
func (l *Lane) Same(o *Lane) bool {
	return l.Rewrite == o.Rewrite && l.Client == o.Client && l.Server == o.Server && l.Port == o.Port && l.Slot == o.Slot && l.Bits == o.Bits
}

// Overlaps reports whether a connection may be of both lanes.
func (l *Lane) Overlaps(o *Lane) bool {
	common := uint16(1)<<min(l.Bits, o.Bits) - 1
	return l.Client.Overlaps(o.Client) && l.Server.Overlaps(o.Server) && (l.Port == 0 || o.Port == 0 || l.Port == o.Port) && l.Slot&common == o.Slot&common
}

func compare(a, b Rule) int {
	return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Lane, b.Lane),
		a.Source.Compare(b.Source), a.Destination.Compare(b.Destination), cmp.Compare(a.From.Value, b.From.Value),
		cmp.Compare(a.To.Value, b.To.Value), cmp.Compare(a.Agent, b.Agent))
}
