package hostd

// prefer tells the edge where guests' new flows leave, and guests how large packets may be.
func (g *guests) prefer() {
	if g.d.edge == nil || len(g.wanted) == 0 && len(g.up) == 0 {
		return
	}
	index := 0
	if p := g.d.preferred(); p != nil {
		index = p.Index
	}
	if err := g.d.edge.PreferUplink(index); err != nil {
		g.d.log.Error("guests' flows do not follow the uplink", "error", err)
	}
	for _, x := range g.up {
		if err := x.fit(g.mtu()); err != nil {
			g.d.log.Warn("the MTU of a guest", "guest", x.Name, "error", err)
		}
	}
}

// mtu is what every uplink takes: a flow may move to any.
func (g *guests) mtu() int {
	least := 0
	for i := range g.d.places {
		if u := g.d.uplink(g.d.places[i].Uplink); u != nil && u.mtu > 0 && (least == 0 || u.mtu < least) {
			least = u.mtu
		}
	}
	return least
}
