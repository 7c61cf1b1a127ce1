package switchd

import (
	"time"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/oftables"
	"scaffold.dev/scaffold/sid"
)

// answers decides about packets that a router's tables punt because they cannot: it does what
// internal/bpf/router/resolve.bpf.c does in a Linux router's kernel, packet by packet, and is tested against it.
// It has no clock and does no I/O.
type answers struct {
	space    sid.Space
	own      sid.Locator
	resolves bool
	ready    bool // false until the first rules are complete: nothing is resolved or refused

	services  map[sid.ServiceID]plan.ServiceRule
	short     map[sid.Suffix]sid.ServiceID // by what is left of a name once its packet was sent to this AS
	tables    map[sid.Triple]*lazyTable
	instances int // of all triples
	redirects map[sid.Locator]sid.Locator
	gone      map[sid.Locator]bool
	naming    *namedRules // of the snapshot under way

	refusals, fails bucket
	told            told
	counts          map[string]uint64 // which fate how many packets met, by the names that a Linux router uses
}

// An answered packet is what is to be sent for one that was punted.
type answered struct {
	frame []byte // nil: nothing
	back  bool   // out of the port that the punted one came in by; else, of one on its way out, through the tables
}

func newAnswers() *answers {
	return &answers{services: map[sid.ServiceID]plan.ServiceRule{}, short: map[sid.Suffix]sid.ServiceID{}, tables: map[sid.Triple]*lazyTable{},
		redirects: map[sid.Locator]sid.Locator{}, gone: map[sid.Locator]bool{}, counts: map[string]uint64{}}
}

// setRouter says whose answers they are.
func (a *answers) setRouter(space sid.Space, own sid.Locator, resolves bool) {
	a.space, a.own, a.resolves = space, own, resolves
}

// drop counts a packet that nothing is sent for.
func (a *answers) drop(reason string) answered {
	a.counts[reason]++
	return answered{}
}

// answer decides about a frame that was punted for the given reason, one of oftables'.
func (a *answers) answer(now time.Time, class uint32, frame []byte) answered {
	p, ok := parseNetwork(frame)
	if !ok || !a.ready {
		return answered{}
	}
	switch class {
	case oftables.PuntHopLimit:
		return a.expire(now, p)
	case oftables.PuntAddressed:
		return a.addressed(now, p)
	case oftables.PuntNoRoute:
		return a.noRoute(now, p)
	}
	locator := sid.LocatorOf(p.dst)
	switch {
	case a.space.Services.Contains(p.dst):
		return a.first(now, p, uint32(locator))
	case !a.space.AS.Contains(p.dst):
		return answered{}
	case locator != a.space.Locator(0):
		return a.left(now, p, locator)
	case isSocket(p.dst):
		return answered{}
	}
	return a.first(now, p, 0)
}

// first sees to a packet for a name: under which service system, or 0 where the packet lost that.
func (a *answers) first(now time.Time, p *puntedPacket, ss uint32) answered {
	if !a.resolves {
		return answered{}
	}
	if p.hopLimit <= 1 {
		return a.expire(now, p)
	}
	if !p.parseTransport() {
		return a.drop("dropped_malformed")
	}
	if p.proto == sid.ICMPv6 && p.fragment != laterFragment && p.kind != echoRequest {
		return a.drop("dropped_icmp")
	}
	service, ok := a.service(sid.Suffix(sid.Low(p.dst)), ss)
	switch {
	case !ok:
		return a.refuse(now, p, unreachableUnknown, "refused_unknown")
	case service.Forbidden:
		return a.refuse(now, p, unreachableForbidden, "refused_forbidden")
	case service.Instances == 0:
		return a.refuse(now, p, unreachableNoInstance, "refused_no_instance")
	}
	triple := sid.Triple{Service: service.Service}
	triple.Proto, triple.Port = p.asksFor()
	table, known := a.tables[triple]
	if !known && p.fragment == laterFragment {
		return a.drop("dropped_fragment")
	}
	if !known {
		return a.refuse(now, p, unreachableNoPort, "refused_no_port")
	}
	to, ok := table.pick(resolve.Hash(p.src, p.retry()))
	if !ok {
		return a.refuse(now, p, unreachableNoInstance, "refused_no_instance")
	}
	return a.forward(p, to, "resolved")
}

func (a *answers) service(suffix sid.Suffix, ss uint32) (plan.ServiceRule, bool) {
	id := sid.ServiceID{SS: ss, Suffix: suffix}
	if ss == 0 {
		id = a.short[suffix]
	}
	s, ok := a.services[id]
	return s, ok
}

// left sees to a packet for a locator that its host may have left.
func (a *answers) left(now time.Time, p *puntedPacket, locator sid.Locator) answered {
	if to, moved := a.redirects[locator]; moved {
		if !p.parseTransport() {
			return a.drop("dropped_malformed")
		}
		return a.forward(p, to, "redirected")
	}
	if !a.gone[locator] {
		return answered{} // not any more: its sender tries again, and by then the switch knows
	}
	if !isSocket(p.src) || !a.space.AS.Contains(p.src) {
		return a.noRoute(now, p) // no flow of this network
	}
	return a.fail(now, p)
}

// forward sends the packet on to the same lower half at another locator.
func (a *answers) forward(p *puntedPacket, to sid.Locator, reason string) answered {
	a.counts[reason]++
	return answered{frame: p.sentTo(to.Addr(sid.Low(p.dst)))}
}
