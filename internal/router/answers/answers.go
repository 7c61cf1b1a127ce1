package answers

import (
	"maps"
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// Answers decide about packets, and count them.
type Answers struct {
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
	silent    map[sid.Locator]bool // hosts here that do not answer
	naming    plan.Naming

	refusals, fails *rate.Limiter
	told            told
	counts          map[string]uint64 // which fate how many packets met, by the names that a Linux router uses
}

// An Answer is what is to be sent for a packet.
type Answer struct {
	Frame []byte // nil: nothing
	Back  bool   // out of the port that the packet came in by; else by the way that the frame's destination has

	// To is where the packet itself is to go on to, of what Decide returns; Frame is nil then.
	To     netip.Addr
	label  sid.Label // that it leaves with
	packet *packet
}

// A Class is why there is something to decide about a packet.
type Class uint8

// The classes.
const (
	ByAddress Class = iota // as its destination says: it is for a name, or for a locator that its host has left
	HopLimit               // its hop limit ends here
	Addressed              // it is for the router itself
	NoRoute                // no route leads to its destination
)

// New knows nothing yet, and answers nothing before the first Commit.
func New() *Answers {
	return &Answers{refusals: limiter(), fails: limiter(),
		services: map[sid.ServiceID]plan.ServiceRule{}, short: map[sid.Suffix]sid.ServiceID{}, tables: map[sid.Triple]*lazyTable{},
		redirects: map[sid.Locator]sid.Locator{}, gone: map[sid.Locator]bool{}, silent: map[sid.Locator]bool{}, counts: map[string]uint64{}}
}

// SetRouter says whose answers they are, and whether that is a service router.
func (a *Answers) SetRouter(space sid.Space, own sid.Locator, resolves bool) {
	a.space, a.own, a.resolves = space, own, resolves
}

// Counts are how many packets met which fate, by the names that a Linux router uses.
func (a *Answers) Counts() map[string]uint64 { return maps.Clone(a.counts) }

// Sizes are how many services there are, and how many instances of all their ports.
func (a *Answers) Sizes() (services, instances int) { return len(a.services), a.instances }

// Left reports whether there is something to decide about packets for a locator: its host is not there any more.
func (a *Answers) Left(l sid.Locator) bool {
	_, moved := a.redirects[l]
	return moved || a.gone[l]
}

// drop counts a packet that nothing is sent for.
func (a *Answers) drop(reason string) Answer {
	a.counts[reason]++
	return Answer{}
}

// Answer decides about an Ethernet frame, and makes what is to be sent.
func (a *Answers) Answer(now time.Time, class Class, frame []byte) Answer {
	got := a.Decide(now, class, frame)
	if got.To.IsValid() {
		return Answer{Frame: got.packet.sentTo(got.To, got.label)}
	}
	return got
}

// Decide decides about an Ethernet frame. A packet that goes on is the caller's to send, changed by Rewrite.
func (a *Answers) Decide(now time.Time, class Class, frame []byte) Answer {
	p, ok := parseNetwork(frame)
	if !ok || !a.ready {
		return Answer{}
	}
	switch class {
	case HopLimit:
		return a.expire(now, p)
	case Addressed:
		return a.addressed(now, p)
	case NoRoute:
		return a.noRoute(now, p)
	}
	locator := sid.LocatorOf(p.dst)
	switch {
	case a.space.Services.Contains(p.dst):
		return a.first(now, p, uint32(locator))
	case !a.space.AS.Contains(p.dst):
		return Answer{}
	case locator != a.space.Locator(0):
		return a.left(now, p, locator)
	case isSocket(p.dst):
		return Answer{}
	}
	return a.first(now, p, 0)
}

// first sees to a packet for a name: under which service system, or 0 where the packet lost that.
func (a *Answers) first(now time.Time, p *packet, ss uint32) Answer {
	if !a.resolves {
		return Answer{}
	}
	p.returned = p.label().Retry() > 0
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
	table, known := a.table(service, p)
	if !known && p.fragment == laterFragment {
		return a.drop("dropped_fragment")
	}
	if !known {
		return a.refuse(now, p, unreachableNoPort, "refused_no_port")
	}
	switch to, label, outcome := table.choose(p.src, p.label(), a.silent); outcome {
	case resolve.Nobody:
		return a.refuse(now, p, unreachableNoInstance, "refused_no_instance")
	case resolve.AllRefused:
		return a.refuse(now, p, unreachableNoPort, "refused_by_all")
	default:
		if label != p.label() {
			return a.lead(p, to, label)
		}
		return a.forward(p, to, "resolved")
	}
}

func (a *Answers) service(suffix sid.Suffix, ss uint32) (plan.ServiceRule, bool) {
	id := sid.ServiceID{SS: ss, Suffix: suffix}
	if ss == 0 {
		id = a.short[suffix]
	}
	s, ok := a.services[id]
	return s, ok
}

// table has those that serve what the packet asks for.
func (a *Answers) table(s plan.ServiceRule, p *packet) (*lazyTable, bool) {
	triple := sid.Triple{Service: s.Service}
	triple.Proto, triple.Port = p.asksFor()
	t, known := a.tables[triple]
	return t, known
}

// left sees to a packet for a locator that its host may have left.
func (a *Answers) left(now time.Time, p *packet, locator sid.Locator) Answer {
	if to, moved := a.redirects[locator]; moved {
		if !p.parseTransport() {
			return a.drop("dropped_malformed")
		}
		return a.forward(p, to, "redirected")
	}
	if !a.gone[locator] && a.silent[locator] && !isSocket(p.dst) && sid.Low(p.dst) != sid.HostSuffix {
		return a.unheard(p, locator)
	}
	if !a.gone[locator] {
		return Answer{} // not any more: its sender tries again, and by then the switch knows
	}
	if !isSocket(p.src) || !a.space.AS.Contains(p.src) {
		return a.noRoute(now, p) // no flow of this network
	}
	return a.fail(now, p)
}

// forward sends the packet on to the same lower half at another locator.
func (a *Answers) forward(p *packet, to sid.Locator, reason string) Answer {
	a.counts[reason]++
	return Answer{To: to.Addr(sid.Low(p.dst)), label: p.label(), packet: p}
}
