package hostd

import (
	"fmt"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
)

// settle makes the host live at the places, at least one of which is live: the edge first, then what
// sends packets through it, then the flows of places that are no more.
func (d *daemon) settle(h *home, places []place) error {
	if firstLive(places) == nil {
		return fmt.Errorf("no uplink of the host's places is up")
	}
	if err := d.openEdge(h); err != nil {
		return err
	}
	for i := range places {
		if err := d.attachEdge(&places[i]); err != nil {
			return fmt.Errorf("uplink %s: %w", places[i].Uplink, err)
		}
	}
	if err := d.kernel.want(d.items(h, places)); err != nil {
		return fmt.Errorf("set up routes and addresses: %w", err)
	}
	before := d.places
	d.home, d.places = h, places
	d.follow(before)
	d.unsaved = true
	d.names.setNetwork(h.Domain, h.Space)
	if err := d.watchSockets(h.Space); err != nil {
		return err
	}
	d.guests.raise()
	return nil
}

// openEdge loads or adopts the edge; one for another address plan is replaced.
func (d *daemon) openEdge(h *home) error {
	if d.edge != nil && d.edge.Space() == h.Space {
		return nil
	}
	if d.edge != nil {
		d.guests.lowerAll()
		d.flows.stop()
		d.edge.Close(false)
		d.edge, d.places, d.former = nil, nil, nil
	}
	edge, err := host.Open(host.Config{Space: h.Space, Identity: h.Space.Identity(d.identity), Pin: d.pin()})
	if err != nil {
		return err
	}
	if d.flows, err = d.keep(edge); err != nil {
		edge.Close(true)
		return err
	}
	d.edge = edge
	d.sessions.edgeOpened(edge)
	go d.readEdge(edge)
	return nil
}

// attachEdge puts the edge on a live place's uplink and tells it the locator. One that it had before is
// retired by that.
func (d *daemon) attachEdge(p *place) error {
	if !p.live() {
		return nil
	}
	d.makeRoom()
	if err := d.edge.AcceptLocator(p.Locator, true); err != nil {
		return err
	}
	u := d.uplink(p.Uplink)
	if err := d.edge.SetUplink(p.Index, host.Uplink{Locator: p.Locator, MTU: uint16(min(u.mtu, 1<<16-1)), Router: p.Router}); err != nil {
		return err
	}
	return d.edge.Attach(p.Index)
}

// follow tells the flows what became of the places from before. All of what is live now is ready to send.
func (d *daemon) follow(before []place) {
	d.regain()
	for i := range before {
		if old := &before[i]; !d.has(old.Locator) {
			d.retire(old)
			d.leave(old)
		}
	}
	d.tellTrust()
	for i := range before {
		old := &before[i]
		switch now := d.placeWith(old.Locator); {
		case now == nil:
			to := d.heir(old)
			d.log.Info("flows move", "from", old.Locator, "to", to.Locator, "uplink", to.Uplink)
			d.sessions.moved(old.Locator, to.Locator)
		case now.link < old.link && now.live():
			d.log.Info("the link of a locator is back", "locator", old.Locator, "uplink", now.Uplink, "confirmed", now.link == settled)
			d.sessions.back(old.Locator)
		}
	}
}

// heir is where the flows of a place go that is no more: another router at the same uplink, or the
// preferred place.
func (d *daemon) heir(old *place) *place {
	if p := d.placeOn(old.Uplink); p != nil && p.live() {
		return p
	}
	return d.preferred()
}

func (d *daemon) placeWith(l sid.Locator) *place {
	if i := slices.IndexFunc(d.places, func(p place) bool { return p.Locator == l }); i >= 0 {
		return &d.places[i]
	}
	return nil
}

// retire tells the edge that nothing leaves by an uplink any more, unless another place is there. Of an
// interface that is gone it was told before.
func (d *daemon) retire(old *place) {
	if d.placeOn(old.Uplink) != nil || d.uplink(old.Uplink).index != old.Index {
		return
	}
	if err := d.edge.SetUplink(old.Index, host.Uplink{}); err != nil {
		d.log.Warn("flows may be sent to an uplink that is lost", "uplink", old.Uplink, "error", err)
	}
}

// save writes down what a restart needs, where it changed.
func (d *daemon) save() {
	if !d.unsaved {
		return
	}
	d.unsaved = false
	err := d.store.savePlaces(&record{home: *d.home, Places: d.places, Former: d.former})
	switch {
	case err == nil && d.diskFull:
		d.log.Info("what a restart needs is saved again")
	case err != nil && !d.diskFull:
		d.log.Warn("a restart will not know what changed since; trying again", "error", err)
	}
	if d.diskFull = err != nil; d.diskFull && !d.retries {
		d.retries = true
		time.AfterFunc(saveAgain, func() {
			d.post(func() { d.retries, d.unsaved = false, d.unsaved || d.diskFull && d.home != nil })
		})
	}
}

// saveAgain is after what time something is tried again that could not be saved: a disk may have room by then.
const saveAgain = time.Second

// readEdge brings the edge's events to the loop until the edge is closed.
func (d *daemon) readEdge(edge *host.Edge) {
	for {
		e, err := edge.ReadEvent()
		if err != nil {
			return
		}
		if e.Kind == host.Refused {
			d.post(func() { d.refused(e) })
		} else {
			d.post(func() { d.sessions.event(e) })
		}
	}
}

// refused feeds the policy of refusals, which asks again or tells the socket.
func (d *daemon) refused(e host.Event) {
	now := time.Now()
	d.refusals.Handle(now, e)
	d.refusals.Expire(now)
	d.answerRefusals()
}

func (d *daemon) answerRefusals() {
	for _, a := range d.refusals.Drain() {
		var err error
		if a.Retry {
			err = d.edge.Retry(a.Event)
		} else {
			err = d.edge.InjectRefusal(a.Event)
		}
		if err != nil {
			d.log.Debug("refusal", "flow", a.Event.ID, "error", err)
		}
	}
}
