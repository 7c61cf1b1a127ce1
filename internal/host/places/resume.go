package places

import (
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/host/routing"
)

// Resume goes on at the places of a daemon that was killed: same locators, same edge, before anyone is asked.
func (p *Places) Resume(r *Record) {
	former := p.formerUplinks(r)
	defer p.leaveUplinks(former)
	for i := range r.Places {
		p.resumeAt(&r.Places[i])
	}
	p.former = r.Former
	places := p.InOrder(r.Places)
	if err := p.Settle(&r.Home, places); err != nil {
		p.Log.Warn("cannot take up the last place now; its flows wait", "error", err)
		if err := p.adoptUnplaced(&r.Home, places); err != nil {
			p.Log.Error("cannot take up the flows of before", "error", err)
		}
		return
	}
	for _, f := range p.former {
		p.graceFrom(f.Left)
	}
	for _, at := range p.list {
		p.Log.Info("took up the host's last place", "locator", at.Locator, "uplink", at.Uplink, "adopted", p.edge.Adopted())
	}
}

// adoptUnplaced takes up the flows of places that lead nowhere now: they move with the host when it gets another.
func (p *Places) adoptUnplaced(h *Home, places []Place) error {
	for i := range places {
		if in, err := routing.DomainOf(places[i].Index); err == nil {
			p.domain = in
		}
	}
	if err := p.openEdge(h); err != nil {
		return err
	}
	p.home = h
	p.TellTrust() // messages come in as soon as a link is up, and a router greets later
	for i := range places {
		places[i].link = lost
		if err := p.edge.SetUplink(places[i].Index, host.Uplink{}); err != nil {
			return err
		}
	}
	p.list = places
	return nil
}

// resumeAt looks whether the uplink is still there, and takes its router for the one of before until one
// greets.
func (p *Places) resumeAt(at *Place) {
	index, ok := p.Uplinks.Resume(at.Uplink, at.Index, at.Router, at.At)
	if !ok {
		at.link = lost
		return
	}
	at.Index = index
}

// formerUplinks takes the places out of a record that were at interfaces which are no uplinks any more.
func (p *Places) formerUplinks(r *Record) (former []Place) {
	r.Places = slices.DeleteFunc(r.Places, func(at Place) bool {
		_, _, there := p.Uplinks.Find(at.Uplink)
		if !there {
			former = append(former, at)
		}
		return !there
	})
	if len(former) > 0 && len(r.Places) == 0 {
		if err := routing.Sweep(r.Space.Identity(p.Identity)); err != nil {
			p.Log.Warn("routes and rules of former uplinks may be left", "error", err)
		}
	}
	return former
}

// leaveUplinks takes edge and address off them: the edge would go on to take the host's packets there, and on a machine
// that is a router now they are to pass by. Its flows wait for the next place, and move there.
func (p *Places) leaveUplinks(former []Place) {
	for i := range former {
		l, err := netlink.LinkByName(former[i].Uplink)
		if err != nil || l.Attrs().Index != former[i].Index {
			continue // all of it went with the interface
		}
		addr := &netlink.Addr{IPNet: routing.IPNet(netip.PrefixFrom(former[i].Locator.Host(), 128))}
		netlink.AddrDel(l, addr) //nolint:errcheck // it may never have been there
		if p.edge == nil {
			continue
		}
		if err = p.edge.Attach(former[i].Index); err == nil { // adopts what is there
			err = p.edge.Detach(former[i].Index)
		}
		if err != nil {
			p.Log.Warn("cannot take the edge off a former uplink", "uplink", former[i].Uplink, "error", err)
		}
	}
}
