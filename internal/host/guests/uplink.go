package guests

// prefer tells the edge where guests' new flows leave, and guests how large packets may be.
func (g *Guests) prefer() {
	if g.Host.Edge() == nil || len(g.wanted) == 0 && len(g.up) == 0 {
		return
	}
	index, _ := g.Host.Uplink() // 0: nowhere for now
	if err := g.Host.Edge().PreferUplink(index); err != nil {
		g.Log.Error("guests' flows do not follow the uplink", "error", err)
	}
	for _, x := range g.up {
		if err := x.fit(g.Host.MTU()); err != nil {
			g.Log.Warn("the MTU of a guest", "guest", x.Name, "error", err)
		}
	}
}
