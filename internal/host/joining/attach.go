package joining

import (
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/host/uplinks"
	"scaffold.dev/scaffold/sid"
)

// refusedAgain is how long after a refusal that may end by itself a place is asked for again.
const refusedAgain = 500 * time.Millisecond

// Attend brings the network's picture of this host up to date: the way to the controller, then the
// places that it does not know of, then the one that others are sent to.
func (j *Joining) Attend() {
	j.reachController()
	if !j.Controller.Connected() {
		return // Join will say it all
	}
	for _, u := range j.Uplinks.All() {
		j.askFor(u)
	}
	j.prefer()
}

// reachController keeps the session on an uplink that leads to a router.
func (j *Joining) reachController() {
	var first *uplinks.Uplink
	for _, u := range j.Uplinks.All() {
		if !u.Leads() {
			continue
		}
		if j.Controller.GoesBy(j.endpoint(u)) {
			return
		}
		if first == nil {
			first = u
		}
	}
	if first == nil {
		j.Controller.Drop()
		return
	}
	j.Controller.Dial(j.endpoint(first))
}

// TryAnother goes by the next uplink where the controller was not reached by one: a router may forward and be
// without its daemon.
func (j *Joining) TryAnother(endpoint string) {
	if !j.Controller.GoesBy(endpoint) {
		return
	}
	if j.Direct {
		return // these are tried one after the other anyway
	}
	var ways []string
	for _, u := range j.Uplinks.All() {
		if u.Leads() {
			ways = append(ways, j.endpoint(u))
		}
	}
	if i := slices.Index(ways, endpoint); i >= 0 && len(ways) > 1 {
		j.Controller.Dial(ways[(i+1)%len(ways)])
	}
}

// GoTo goes to another controller.
func (j *Joining) GoTo(endpoint string) {
	j.going = endpoint
	if !j.Controller.GoesBy("") && !j.Controller.GoesBy(endpoint) {
		j.Controller.Dial(endpoint)
	}
}

// askFor asks for a place for the uplink, unless it has it or has asked already.
func (j *Joining) askFor(u *uplinks.Uplink) {
	a := u.Attachment()
	if p := j.Places.On(u.Name); a == nil || p != nil && p.Is(u.Index, u.Router, a) || j.bids[u.Name] != nil {
		return
	}
	b := j.bid(u)
	j.bids[u.Name] = b
	j.Controller.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Attach{Attach: j.attach(b)}})
}

// prefer tells which locator new flows to this host are to be sent to.
func (j *Joining) prefer() {
	if p := j.Places.First(); p != nil && p.Locator != j.told {
		j.told = p.Locator
		j.Controller.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Prefer{Prefer: &apiv1.Prefer{Locator: uint64(p.Locator)}}})
	}
}

// Attached takes the answer to an Attach. One that was overtaken by the link is of no interest.
func (j *Joining) Attached(a *apiv1.Attached) {
	if a.Serial == 0 {
		j.Places.Certified(a)
		return
	}
	i := slices.IndexFunc(j.Uplinks.All(), func(u *uplinks.Uplink) bool { b := j.bids[u.Name]; return b != nil && b.serial == a.Serial })
	if i < 0 || j.Places.Home() == nil {
		return
	}
	u := j.Uplinks.All()[i]
	b := j.bids[u.Name]
	delete(j.bids, u.Name)
	p, ok := j.answered(j.Places.Home(), b, a)
	if !ok || !p.Live() {
		return
	}
	old, from := j.Places.On(u.Name), sid.Locator(0)
	if old != nil && old.Locator != p.Locator {
		from = old.Locator
	}
	if err := j.Places.Settle(j.Places.Home(), j.Places.With(p)); err != nil {
		j.Log.Error("cannot take the place that the controller gave", "uplink", u.Name, "locator", a.Locator, "error", err)
		return
	}
	j.Log.Info("attached", "locator", p.Locator, "uplink", u.Name, "router", p.At.Router, "port", p.At.Port)
	if from != 0 {
		j.detach(from, p.Locator)
	}
	j.prefer()
}

// refusedPlace tries again where that may help: when the link changes in any case.
func (j *Joining) refusedPlace(b *Bid, err error, retry bool) {
	j.Log.Warn("no place for an uplink", "uplink", b.uplink, "router", b.Router, "error", err, "retry", retry)
	j.bids[b.uplink] = b // asked already
	if retry {
		time.AfterFunc(refusedAgain, func() {
			j.Post(func() {
				if j.bids[b.uplink] == b {
					delete(j.bids, b.uplink)
					j.Attend()
				}
			})
		})
	}
}

// detach tells where what still comes for a locator is to be sent.
func (j *Joining) detach(from, to sid.Locator) {
	if j.Controller.Connected() {
		j.prefer()
		j.Controller.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Detach{Detach: &apiv1.Detach{Locator: uint64(from), To: uint64(to)}}})
	}
}

// endpoint is where the controller is reached from the uplink.
func (j *Joining) endpoint(u *uplinks.Uplink) string {
	if j.Direct {
		return j.going
	}
	return u.Relay()
}
