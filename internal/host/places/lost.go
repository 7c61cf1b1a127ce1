package places

import (
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
)

// Gone takes the edge off an interface that is not there any more.
func (p *Places) Gone(index int) {
	if p.edge != nil {
		p.edge.Detach(index) //nolint:errcheck // the interface is gone; what was pinned for it as well
	}
}

// Lose deals with an uplink that leads nowhere any more. Its flows go on at another place at once, if
// there is one; if there is none the place waits for its link. It returns what the host has not got any more.
func (p *Places) Lose(uplink string) (left []sid.Locator) {
	for i := range p.list {
		if p.list[i].Uplink == uplink {
			p.list[i].link = lost
		}
	}
	left = p.giveUpLost()
	p.await()
	return left
}

// refreshEvery is how often what waits for an uplink is made to look for it: more than once between two SYNs, which are a
// second apart at least.
const refreshEvery = 300 * time.Millisecond

// await keeps connections waiting that begin while no uplink is there.
func (p *Places) await() {
	if p.awaiting || p.home == nil || p.First() != nil {
		return
	}
	if err := p.kernel.Refresh(); err != nil {
		p.Log.Debug("keep connections waiting for an uplink", "error", err)
	}
	p.awaiting = true
	time.AfterFunc(refreshEvery, func() { p.Post(func() { p.awaiting = false; p.await() }) })
}

// giveUpLost takes the lost places off the host where there are others.
func (p *Places) giveUpLost() (left []sid.Locator) {
	all := slices.Clone(p.list)
	rest := slices.DeleteFunc(slices.Clone(all), func(at Place) bool { return !at.Live() })
	if len(rest) == 0 || len(rest) == len(all) {
		return nil
	}
	if err := p.Settle(p.home, rest); err != nil {
		p.Log.Error("cannot go on at the other uplinks", "error", err)
		return nil
	}
	for i := range all {
		if !all[i].Live() {
			left = append(left, all[i].Locator)
		}
	}
	return left
}

// Presume goes on at the place that the uplink had, although the network did not confirm it yet.
func (p *Places) Presume(uplink string, index int, router netip.Addr) {
	was := p.On(uplink)
	if was == nil || was.link != lost || !router.IsValid() {
		return
	}
	back := *was
	back.link, back.Index, back.Router = presumed, index, router
	if err := p.Settle(p.home, p.With(back)); err != nil {
		p.Log.Warn("cannot set the uplink up again", "uplink", uplink, "error", err)
	}
}

// Silence keeps flows from the uplink, also once there is another one: what is sent to a link that is down waits
// three seconds for its router's answer, and TCP does not send again what it knows to be waiting. What was sent
// before the link was known to be down waits no longer.
func (p *Places) Silence(uplink string, index int) {
	if p.edge == nil {
		return
	}
	if err := p.edge.SetUplink(index, host.Uplink{}); err != nil {
		p.Log.Warn("flows may be sent to an uplink that is lost", "uplink", uplink, "error", err)
	}
	if at := p.On(uplink); at != nil {
		p.Flows.Hush(at.Locator)
	}
	waiting, err := netlink.NeighList(index, netlink.FAMILY_V6)
	if err != nil {
		p.Log.Debug("list the neighbours of an uplink that is lost", "uplink", uplink, "error", err)
	}
	for i := range waiting {
		if waiting[i].State&(netlink.NUD_INCOMPLETE|netlink.NUD_FAILED) != 0 {
			netlink.NeighDel(&waiting[i]) //nolint:errcheck // it went by itself
		}
	}
}

// Restore puts back what somebody took away.
func (p *Places) Restore() {
	if p.First() == nil {
		return
	}
	missing, err := p.kernel.Restore()
	for _, m := range missing {
		p.Log.Warn("put back what somebody removed", "what", m)
	}
	if err != nil {
		p.Log.Warn("cannot restore the host's set-up", "error", err)
	}
}
