package hostd

import (
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/sid"
)

// refusedAgain is how long after a refusal that may end by itself a place is asked for again.
const refusedAgain = 500 * time.Millisecond

// attend brings the network's picture of this host up to date: the way to the controller, then the
// places that it does not know of, then the one that others are sent to.
func (d *daemon) attend() {
	d.reachController()
	if d.control.out == nil {
		return // Join will say it all
	}
	for _, u := range d.uplinks {
		d.askFor(u)
	}
	d.prefer()
}

// reachController keeps the session on an uplink that leads to a router.
func (d *daemon) reachController() {
	var first *uplink
	for _, u := range d.uplinks {
		if !u.leads() {
			continue
		}
		if d.control.goesBy(d.endpoint(u)) {
			return
		}
		if first == nil {
			first = u
		}
	}
	if first == nil {
		d.control.drop()
		return
	}
	d.control.dial(d.endpoint(first))
}

// tryAnother goes by the next uplink where the controller was not reached by one: a router may forward and be
// without its daemon.
func (d *daemon) tryAnother(endpoint string) {
	if !d.control.goesBy(endpoint) {
		return
	}
	if d.controllers != nil {
		return // these are tried one after the other anyway
	}
	var ways []string
	for _, u := range d.uplinks {
		if u.leads() {
			ways = append(ways, d.endpoint(u))
		}
	}
	if i := slices.Index(ways, endpoint); i >= 0 && len(ways) > 1 {
		d.control.dial(ways[(i+1)%len(ways)])
	}
}

// goTo goes to another controller.
func (d *daemon) goTo(endpoint string) {
	d.going = endpoint
	if !d.control.goesBy("") && !d.control.goesBy(endpoint) {
		d.control.dial(endpoint)
	}
}

// askFor asks for a place for the uplink, unless it has it or has asked already.
func (d *daemon) askFor(u *uplink) {
	a := u.attachment()
	if p := d.placeOn(u.name); a == nil || p != nil && p.is(u) || u.bid != nil {
		return
	}
	u.bid = d.bid(u)
	d.control.send(&apiv1.HostReport{Report: &apiv1.HostReport_Attach{Attach: d.attach(u.bid)}})
}

// prefer tells which locator new flows to this host are to be sent to.
func (d *daemon) prefer() {
	if p := d.preferred(); p != nil && p.Locator != d.told {
		d.told = p.Locator
		d.control.send(&apiv1.HostReport{Report: &apiv1.HostReport_Prefer{Prefer: &apiv1.Prefer{Locator: uint64(p.Locator)}}})
	}
}

// attached takes the answer to an Attach. One that was overtaken by the link is of no interest.
func (d *daemon) attached(a *apiv1.Attached) {
	if a.Serial == 0 {
		d.certified(a)
		return
	}
	i := slices.IndexFunc(d.uplinks, func(u *uplink) bool { return u.bid != nil && u.bid.serial == a.Serial })
	if i < 0 || d.home == nil {
		return
	}
	u, b := d.uplinks[i], d.uplinks[i].bid
	u.bid = nil
	p, ok := d.answered(d.home, b, a)
	if !ok || p.link == lost {
		return
	}
	old, from := d.placeOn(u.name), sid.Locator(0)
	if old != nil && old.Locator != p.Locator {
		from = old.Locator
	}
	if err := d.settle(d.home, d.placesWith(p)); err != nil {
		d.log.Error("cannot take the place that the controller gave", "uplink", u.name, "locator", a.Locator, "error", err)
		return
	}
	d.log.Info("attached", "locator", p.Locator, "uplink", u.name, "router", p.At.Router, "port", p.At.Port)
	if from != 0 {
		d.detach(from, p.Locator)
	}
	d.prefer()
}

// refusedPlace tries again where that may help: when the link changes in any case.
func (d *daemon) refusedPlace(b *bid, err error, retry bool) {
	d.log.Warn("no place for an uplink", "uplink", b.uplink, "router", b.Router, "error", err, "retry", retry)
	u := d.uplink(b.uplink)
	u.bid = b // asked already
	if retry {
		time.AfterFunc(refusedAgain, func() {
			d.post(func() {
				if u.bid == b {
					u.bid = nil
					d.attend()
				}
			})
		})
	}
}

// lose deals with an uplink that leads nowhere any more. Its flows go on at another place at once, if
// there is one; if there is none the place waits for its link.
func (d *daemon) lose(u *uplink) {
	u.bid = nil
	for i := range d.places {
		if d.places[i].Uplink == u.name {
			d.places[i].link = lost
		}
	}
	d.giveUpLost()
	d.attend()
}

// giveUpLost takes the lost places off the host where there are others.
func (d *daemon) giveUpLost() {
	all := slices.Clone(d.places)
	rest := slices.DeleteFunc(slices.Clone(all), func(p place) bool { return !p.live() })
	if len(rest) == 0 || len(rest) == len(all) {
		return
	}
	if err := d.settle(d.home, rest); err != nil {
		d.log.Error("cannot go on at the other uplinks", "error", err)
		return
	}
	for i := range all {
		if !all[i].live() {
			d.detach(all[i].Locator, d.preferred().Locator)
		}
	}
}

// detach tells where what still comes for a locator is to be sent.
func (d *daemon) detach(from, to sid.Locator) {
	if d.control.out != nil {
		d.prefer()
		d.control.send(&apiv1.HostReport{Report: &apiv1.HostReport_Detach{Detach: &apiv1.Detach{Locator: uint64(from), To: uint64(to)}}})
	}
}
