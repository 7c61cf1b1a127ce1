package controld

import (
	"fmt"
	"net/netip"
	"slices"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/sid"
)

// An attachment is a place of a host that is here, with what its router says of it.
type attachment struct {
	store.Place
	host     *host
	state    plan.HostState
	answered bool // a probe, in this stay: silence before that is a host that sets itself up
}

// all are the host's places, the preferred one first; after it left, those that it had.
func (h *host) all() []store.Place { return append([]store.Place{h.Place}, h.Others...) }

func (h *host) has(l sid.Locator) bool {
	return slices.ContainsFunc(h.all(), func(p store.Place) bool { return p.Locator == l })
}

// at are the attachments of a host that is here, the preferred one first.
func (n *network) at(h *host) (list []*attachment) {
	for _, p := range h.all() {
		if at := n.places[p.Locator]; at != nil && at.host == h {
			list = append(list, at)
		}
	}
	return list
}

// save stores what is known of a host, soon. The saver reads it beside the loop, so it gets places of its own.
func (n *network) save(h *host) {
	record := h.Host
	record.Others = slices.Clone(h.Others)
	n.saver.later(store.PutHost(record))
}

// state is that of the host's place that is most alive.
func (n *network) state(h *host) plan.HostState {
	best := plan.HostGone
	for _, at := range n.at(h) {
		best = min(best, at.state)
	}
	return best
}

// placeFor is the place of an uplink that is at the attachment. taken are locators that its host uses
// elsewhere.
func (n *network) placeFor(h *host, name string, a *apiv1.Attachment, asked string, taken []store.Place) (store.Place, error) {
	r, ok := n.routers[a.GetRouter()]
	if !ok {
		return store.Place{}, fmt.Errorf("first-hop router %.80q has not joined the network yet", a.GetRouter())
	}
	prefix, _ := netip.ParsePrefix(asked)
	p := store.Place{Router: a.Router, Port: a.Port, LinkLocal: a.LinkLocal, MAC: a.Mac}
	l, err := n.locatorFor(h, name, r, p, locatorOf(prefix), taken)
	p.Locator = l
	return p, err
}

func locatorOf(p netip.Prefix) sid.Locator {
	if !p.IsValid() || !p.Addr().Is6() {
		return 0
	}
	return sid.LocatorOf(p.Addr())
}

// othersOf finds places for the further uplinks that a Join names, and what to answer of each.
func (n *network) othersOf(h *host, j *apiv1.Join, first store.Place) (places []store.Place, answers []*apiv1.Attached) {
	for _, o := range j.Others {
		p, err := n.placeFor(h, j.Name, o.Attachment, o.Locator, append([]store.Place{first}, places...))
		if err == nil {
			places = append(places, p)
		}
		answers = append(answers, n.attached(j.Key, o.Serial, p, err))
	}
	return places, answers
}

func (n *network) attached(key []byte, serial uint32, p store.Place, err error) *apiv1.Attached {
	if err != nil {
		return &apiv1.Attached{Serial: serial, Refused: err.Error(), Retry: true}
	}
	return &apiv1.Attached{Serial: serial, Locator: p.Locator.String(), Certificate: n.certificate(key, p.Locator)}
}

// settle puts a place of a host into the plan as its router sees it.
func (n *network) settle(h *host, p store.Place) {
	at := n.places[p.Locator]
	if at == nil || at.host != h {
		at = &attachment{host: h}
		n.places[p.Locator] = at
	}
	at.Place, at.state = p, plan.HostUp
	if s, ok := n.probed(at); ok {
		at.state = s
		at.answered = at.answered || s == plan.HostUp
	}
	n.reclaim(p.Locator)
	n.touchHost(h.Name)
	ll, _ := netip.ParseAddr(p.LinkLocal)
	n.plan.SetHost(plan.Host{
		Name: h.Name, Locator: p.Locator, Router: p.Router, Port: p.Port, LinkLocal: ll.WithZone(""), MAC: mac(p.MAC), State: at.state,
	})
}

func mac(b []byte) (m [6]byte) {
	if len(b) == len(m) {
		copy(m[:], b)
	}
	return m
}

// vacate takes a place out of the plan.
func (n *network) vacate(p store.Place) {
	n.plan.RemoveHost(p.Locator)
	delete(n.places, p.Locator)
	if r, ok := n.routers[p.Router]; ok {
		delete(r.states, p.Locator)
	}
}

// quit is what happens to a place that its host has left while it is at others: its locator is kept for it
// for a while, and what comes there is sent to the one that it prefers. follow is false for another machine
// that took over the name: it knows nothing of those flows.
func (n *network) quit(h *host, p store.Place, follow bool) {
	_, kept := n.quarantine[p.Locator]
	if at := n.places[p.Locator]; at != nil && at.host != h || at == nil && !kept {
		return // it left long ago, and the locator is free or another host's
	}
	n.vacate(p)
	n.hold(p.Locator, h.Name)
	if follow {
		n.redirect(h, p.Locator, h.Locator)
	} else {
		n.plan.SetLeft(p.Locator, true)
	}
}

// attach gives a further uplink of a host its place.
func (n *network) attach(h *host, m *apiv1.Attach) {
	err := checkAttachment(m.Attachment, m.Locator)
	var p store.Place
	if err == nil {
		p, err = n.placeFor(h, h.Name, m.Attachment, m.Locator, n.elsewhere(h, m))
	}
	if err == nil && !h.has(p.Locator) && len(h.Others) >= maxPlaces-1 {
		err = fmt.Errorf("a host has at most %d places", maxPlaces)
	}
	if err == nil {
		h.keep(p)
		n.own(h)
		n.settle(h, p)
		n.save(h)
	}
	h.session.send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Attached{Attached: n.attached(h.Key, m.Serial, p, err)}})
	if err == nil {
		n.event("host.attach", h.Name, "host is also at "+p.Router+" "+p.Port, "locator", p.Locator.String(), "router", p.Router)
	}
}

// elsewhere are the places of a host that the uplink cannot have: all but those on its own port, and the
// one that it asks for.
func (n *network) elsewhere(h *host, m *apiv1.Attach) []store.Place {
	prefix, _ := netip.ParsePrefix(m.Locator)
	return slices.DeleteFunc(h.all(), func(p store.Place) bool {
		return p.Router == m.Attachment.Router && p.Port == m.Attachment.Port || p.Locator == locatorOf(prefix)
	})
}

// keep notes a place, in the stead of what was known of its locator.
func (h *host) keep(p store.Place) {
	if h.Locator == p.Locator {
		h.Place = p
		return
	}
	if i := slices.IndexFunc(h.Others, func(o store.Place) bool { return o.Locator == p.Locator }); i >= 0 {
		h.Others[i] = p
		return
	}
	h.Others = append(h.Others, p)
}

// detach takes a place from a host that has others. The last one stays: its router says what becomes of it.
func (n *network) detach(h *host, m *apiv1.Detach) {
	l, to := sid.Locator(m.Locator), sid.Locator(m.To)
	if !h.has(l) || len(h.Others) == 0 || to == l || to != 0 && !h.has(to) {
		n.event("host.error", h.Name, fmt.Sprintf("host gives up its place %v for %v: not two of its places", l, to))
		return
	}
	p := n.places[l].Place
	if h.Locator == l {
		n.preferOther(h, l, to)
	}
	h.Others = slices.DeleteFunc(h.Others, func(o store.Place) bool { return o.Locator == l })
	n.own(h)
	n.vacate(p)
	n.hold(l, h.Name)
	if to != 0 {
		n.redirect(h, l, to)
	} else {
		n.abandon(h, l)
	}
	n.save(h)
	n.event("host.detach", h.Name, "host left "+p.Router+" "+p.Port, "locator", l.String(), "to", to.String())
}

// preferOther prefers the place that the host goes to, or else the other one that is most alive.
func (n *network) preferOther(h *host, not, to sid.Locator) {
	best := plan.HostGone + 1
	for _, at := range n.at(h) {
		if to == 0 && at.Locator != not && at.state < best {
			best, to = at.state, at.Locator
		}
	}
	n.prefer(h, to)
}

// prefer sends new flows to one of the host's places.
func (n *network) prefer(h *host, l sid.Locator) {
	i := slices.IndexFunc(h.Others, func(p store.Place) bool { return p.Locator == l })
	if i < 0 {
		return
	}
	h.Place, h.Others[i] = h.Others[i], h.Place
	n.plan.Prefer(l)
	n.save(h)
	n.event("host.prefer", h.Name, "new flows go to "+h.Router+" "+h.Port, "locator", l.String())
}
