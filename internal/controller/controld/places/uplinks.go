package places

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/locators"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// For is the place of an uplink that is at the attachment. taken are locators that its host, nil for a new one, uses
// elsewhere.
func (x *Places) For(h *Host, name string, a *apiv1.Attachment, asked string, taken []store.Place) (store.Place, error) {
	block, known := x.Routers.Block(a.GetRouter())
	if !known && x.Routers.Forgotten(a.GetRouter()) {
		return store.Place{}, errForgotten{a.Router}
	}
	if !known {
		return store.Place{}, fmt.Errorf("first-hop router %.80q has not joined the network yet", a.GetRouter())
	}
	prefix, _ := netip.ParsePrefix(asked)
	p := store.Place{Router: a.Router, Port: a.Port, LinkLocal: a.LinkLocal, MAC: a.Mac}
	l, err := x.Locators.For(locators.Ask{
		Host: name, Router: p.Router, Block: block, Asked: locatorOf(prefix), Wishes: wishes(h, p, locatorOf(prefix)),
		Has: func(l sid.Locator) bool { return h != nil && h.Has(l) }, Taken: taken, Waits: x.Waits(),
	})
	if errors.Is(err, locators.ErrFull) {
		x.Full(p.Router, err)
	}
	p.Locator = l
	return p, err
}

func locatorOf(p netip.Prefix) sid.Locator {
	if !p.IsValid() || !p.Addr().Is6() {
		return 0
	}
	return sid.LocatorOf(p.Addr())
}

// wishes are locators in the order in which an uplink would have them: the one that it asks for if its host has it, the one
// that it had at the same port, the one that it asks for, and any that the host had.
func wishes(h *Host, at store.Place, asked sid.Locator) []sid.Locator {
	if h == nil {
		return []sid.Locator{asked}
	}
	var list, had []sid.Locator
	if h.Has(asked) {
		list = append(list, asked)
	}
	for _, p := range h.All() {
		if p.Router == at.Router && p.Port == at.Port {
			list = append(list, p.Locator)
		}
		had = append(had, p.Locator)
	}
	return append(append(list, asked), had...)
}

// Others finds places for the further uplinks that a Join names, and what to answer of each.
func (x *Places) Others(h *Host, j *apiv1.Join, first store.Place) (places []store.Place, answers []*apiv1.Attached) {
	for _, o := range j.Others {
		p, err := x.For(h, j.Name, o.Attachment, o.Locator, append([]store.Place{first}, places...))
		if err == nil {
			places = append(places, p)
		}
		answers = append(answers, x.Attached(j.Name, j.Key, o.Serial, p, err))
	}
	return places, answers
}

// Attached is the answer to an uplink that is at a place, or why it is not.
func (x *Places) Attached(host string, key []byte, serial uint32, p store.Place, err error) *apiv1.Attached {
	if err != nil {
		return &apiv1.Attached{Serial: serial, Refused: err.Error(), Retry: true, NoRouter: ForgottenRouter(err)}
	}
	return &apiv1.Attached{Serial: serial, Locator: p.Locator.String(), Certificate: x.Hosts.Certificate(host, key, p.Locator)}
}

// WasForgotten says that a router is none any more.
func WasForgotten(router string) string {
	return fmt.Sprintf("router %.80q was forgotten: it is no router of this network any more", router)
}

// An errForgotten is why a host is not let in by a router.
type errForgotten struct{ router string }

func (e errForgotten) Error() string { return WasForgotten(e.router) }

// ForgottenRouter is the router that the error is about, "" for any other error.
func ForgottenRouter(err error) string {
	var e errForgotten
	errors.As(err, &e)
	return e.router
}

// Attach gives a further uplink of a host its place, or says why not.
func (x *Places) Attach(h *Host, m *apiv1.Attach) *apiv1.Attached {
	err := check(m.Attachment, m.Locator)
	var p store.Place
	if err == nil {
		p, err = x.For(h, h.Name, m.Attachment, m.Locator, h.elsewhere(m))
	}
	if err == nil && !h.Has(p.Locator) && len(h.Others) >= Most-1 {
		err = fmt.Errorf("a host has at most %d places", Most)
	}
	if err == nil {
		h.keep(p)
		x.Own(h)
		x.settle(h, p)
		x.Save(h)
		x.Events.Tell("host.attach", h.Name, "host is also at "+p.Router+" "+p.Port, "locator", p.Locator.String(), "router", p.Router)
	}
	return x.Attached(h.Name, h.Key, m.Serial, p, err)
}

// elsewhere are the places of a host that the uplink cannot have: all but those on its own port, and the
// one that it asks for.
func (h *Host) elsewhere(m *apiv1.Attach) []store.Place {
	prefix, _ := netip.ParsePrefix(m.Locator)
	return slices.DeleteFunc(h.All(), func(p store.Place) bool {
		return p.Router == m.Attachment.Router && p.Port == m.Attachment.Port || p.Locator == locatorOf(prefix)
	})
}

// keep notes a place, in the stead of what was known of its locator.
func (h *Host) keep(p store.Place) {
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

// Detach takes a place from a host that has others. The last one stays: its router says what becomes of it.
func (x *Places) Detach(h *Host, m *apiv1.Detach) {
	l, to := sid.Locator(m.Locator), sid.Locator(m.To)
	if !h.Has(l) || len(h.Others) == 0 || to == l || to != 0 && !h.Has(to) {
		x.Events.Tell("host.error", h.Name, fmt.Sprintf("host gives up its place %v for %v: not two of its places", l, to))
		return
	}
	p := x.all[l].Place
	if h.Locator == l {
		x.preferOther(h, l, to)
	}
	h.Others = slices.DeleteFunc(h.Others, func(o store.Place) bool { return o.Locator == l })
	x.Own(h)
	x.vacate(p)
	x.Locators.Hold(l, h.Name)
	x.Locators.LetIn(p, h.Name)
	if to != 0 {
		x.Redirects.Begin(h.Name, l, to)
	} else {
		x.abandon(h, l)
	}
	x.Save(h)
	x.Events.Tell("host.detach", h.Name, "host left "+p.Router+" "+p.Port, "locator", l.String(), "to", to.String())
}

// abandon says that nobody is at a locator of a host that lives on elsewhere, and that it went nowhere.
func (x *Places) abandon(h *Host, l sid.Locator) {
	x.Redirects.Abandon(l)
	x.Plan.SetLeft(l, true)
	x.Hosts.Gone(h.Name, uint64(l))
}

// preferOther prefers the place that the host goes to, or else the other one that is most alive.
func (x *Places) preferOther(h *Host, not, to sid.Locator) {
	best := plan.HostGone + 1
	for _, at := range x.at(h) {
		if to == 0 && at.Locator != not && at.state < best {
			best, to = at.state, at.Locator
		}
	}
	x.Prefer(h, to)
}

// Prefer sends new flows to one of the host's places.
func (x *Places) Prefer(h *Host, l sid.Locator) {
	i := slices.IndexFunc(h.Others, func(p store.Place) bool { return p.Locator == l })
	if i < 0 {
		return
	}
	h.Place, h.Others[i] = h.Others[i], h.Place
	x.Plan.Prefer(l)
	x.Save(h)
	x.Events.Tell("host.prefer", h.Name, "new flows go to "+h.Router+" "+h.Port, "locator", l.String())
}
