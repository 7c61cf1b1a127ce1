package places

import (
	"fmt"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/host/routing"
)

// Settle makes the host live at the places, at least one of which is live: the edge first, then what
// sends packets through it, then the flows of places that are no more.
func (p *Places) Settle(h *Home, places []Place) error {
	if list(places).First() == nil {
		return fmt.Errorf("no uplink of the host's places is up")
	}
	leave := p.leaving(places)
	in, err := routing.CommonDomain(leave)
	if err != nil {
		return err
	}
	p.domain = in // what is opened with the edge is bound to its device
	if err := p.openEdge(h); err != nil {
		return err
	}
	p.edge.BindTo(in.Device())
	p.Flows.BindTo(in.Device()) // uplinks may have been put into a VRF since the edge was opened
	for i := range places {
		if err := p.attachEdge(&places[i]); err != nil {
			return fmt.Errorf("uplink %s: %w", places[i].Uplink, err)
		}
	}
	if err := p.kernel.Want(routing.Host{Space: h.Space, Identity: h.Space.Identity(p.Identity), Domain: in, Beside: p.Beside, Places: leave}.Items()); err != nil {
		return fmt.Errorf("set up routes and addresses: %w", err)
	}
	before := p.list
	p.home, p.list = h, places
	p.follow(before)
	p.unsaved = true
	return p.Settled(h)
}

// leaving are those of the places by which packets leave.
func (p *Places) leaving(places []Place) (all []routing.Place) {
	for i := range places {
		if at := &places[i]; at.Live() {
			all = append(all, routing.Place{Uplink: at.Uplink, Index: at.Index, Rank: p.rank(at.Uplink), Locator: at.Locator, Router: at.Router})
		}
	}
	return all
}

// openEdge loads or adopts the edge; one for another address plan is replaced.
func (p *Places) openEdge(h *Home) error {
	if p.edge != nil && p.edge.Space() == h.Space {
		return nil
	}
	if p.edge != nil {
		p.Edges.Close()
		p.edge, p.list, p.former = nil, nil, nil
	}
	edge, err := p.Edges.Open(h.Space, p.domain.Device())
	p.edge = edge
	return err
}

// attachEdge puts the edge on a live place's uplink and tells it the locator. One that it had before is
// retired by that.
func (p *Places) attachEdge(at *Place) error {
	if !at.Live() {
		return nil
	}
	p.makeRoom()
	if err := p.edge.AcceptLocator(at.Locator, true); err != nil {
		return err
	}
	_, mtu, _ := p.Uplinks.Find(at.Uplink)
	if err := p.edge.SetUplink(at.Index, host.Uplink{Locator: at.Locator, MTU: uint16(min(mtu, 1<<16-1)), Router: at.Router}); err != nil {
		return err
	}
	return p.edge.Attach(at.Index)
}

// follow tells the flows what became of the places from before. All of what is live now is ready to send.
func (p *Places) follow(before []Place) {
	p.regain()
	for i := range before {
		if old := &before[i]; !p.Has(old.Locator) {
			p.retire(old)
			p.leave(old)
		}
	}
	p.TellTrust()
	for i := range before {
		old := &before[i]
		switch now := p.At(old.Locator); {
		case now == nil:
			to := p.successor(old)
			p.Log.Info("flows move", "from", old.Locator, "to", to.Locator, "uplink", to.Uplink)
			p.Flows.Moved(old.Locator, to.Locator)
		case now.link < old.link && now.Live():
			p.Log.Info("the link of a locator is back", "locator", old.Locator, "uplink", now.Uplink, "confirmed", now.link == settled)
			p.Flows.Back(old.Locator)
		}
	}
}

// successor is where the flows of a place go that is no more: another router at the same uplink, or the
// preferred place.
func (p *Places) successor(old *Place) *Place {
	if at := p.On(old.Uplink); at != nil && at.Live() {
		return at
	}
	return p.First()
}

// retire tells the edge that nothing leaves by an uplink any more, unless another place is there. Of an
// interface that is gone it was told before.
func (p *Places) retire(old *Place) {
	if index, _, _ := p.Uplinks.Find(old.Uplink); p.On(old.Uplink) != nil || index != old.Index {
		return
	}
	if err := p.edge.SetUplink(old.Index, host.Uplink{}); err != nil {
		p.Log.Warn("flows may be sent to an uplink that is lost", "uplink", old.Uplink, "error", err)
	}
}
