package legs

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/lane"
)

// portOf reads where an agent says that it has a connection: a port of one of its own addresses, whatever else it says, for
// switches send packets there.
func (x *Legs) portOf(agent, text string, host netip.AddrPort) (at netip.AddrPort, err error) {
	if at, err = lane.ParseEnd(text); err != nil || at.Port() == 0 {
		return at, fmt.Errorf("its port %.80q is none", text)
	}
	if at.Addr().Is4() == host.Addr().Is4() && slices.Contains(x.in.Addresses(agent), at.Addr()) {
		return at, nil
	}
	return at, fmt.Errorf("%v is none of the agent's addresses of that family", at)
}

// Ask takes a leg that a far agent asks for.
func (x *Legs) Ask(agent string, m *apiv1.BoostLeg) {
	l, err := x.read(agent, m)
	if err == nil && !(l.Far && x.in.MayHave(agent, m.Lane, l.Client, l.Server)) {
		err = fmt.Errorf("no lane of the agent's has a connection of %v to %v", l.Client, l.Server)
	}
	if err == nil {
		err = x.set(l)
	}
	if err != nil {
		x.answer(&leg{Key: Key{Agent: agent}, number: m.Number}, err.Error())
	}
}

// read reads what an agent says of one of its legs.
func (x *Legs) read(agent string, m *apiv1.BoostLeg) (*leg, error) {
	l := &leg{Key: Key{Agent: agent, Far: m.Far}, site: x.in.Site(agent), number: m.Number}
	var err, err2 error
	l.Client, err = lane.ParseEnd(m.Client)
	l.Server, err2 = lane.ParseEnd(m.Server)
	if err = cmp.Or(err, err2); err == nil {
		l.at, err = x.portOf(agent, m.At, l.Client)
	}
	return l, err
}

// Joined takes all the legs that an agent says it has, when it joins. They are those of connections that it carries, whose lanes may
// be gone: of hosts of two sites, its own one of them, whatever it says.
func (x *Legs) Joined(agent string, all []*apiv1.BoostLeg) {
	has := map[Key]bool{}
	for _, m := range all[:min(len(all), Most)] {
		l, err := x.read(agent, m)
		if err != nil || !x.isOfSite(l) {
			continue
		}
		has[l.Key] = true
		if was := x.all[l.Key]; was != nil && was.at == l.at && l.number == 0 {
			was.before = true
			continue
		}
		l.before = true
		if err := x.set(l); err != nil {
			x.answer(l, err.Error())
		}
	}
	for key, l := range x.all {
		if key.Agent == agent && !has[key] {
			x.end(l)
		}
	}
}

// isOfSite reports whether the end host of a leg is one of its agent's site, and the other one of another.
func (x *Legs) isOfSite(l *leg) bool {
	host, other := l.hosts()
	at := x.in.At(other.Addr())
	return l.site != "" && x.in.At(host.Addr()) == l.site && at != "" && at != l.site
}

// Over takes that an agent has no more to do with a connection.
func (x *Legs) Over(agent string, m *apiv1.BoostLegOver) {
	client, err := lane.ParseEnd(m.Client)
	server, err2 := lane.ParseEnd(m.Server)
	l := x.all[Key{agent, m.Far, client, server}]
	if l == nil || cmp.Or(err, err2) != nil || l.at.String() != m.At { // the next one of the same hosts may be there
		return
	}
	l.over = true
	x.in.After(LateSegments, func() {
		if x.all[l.Key] == l {
			x.end(l)
		}
	})
}
