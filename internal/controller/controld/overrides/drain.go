package overrides

import (
	"cmp"

	"scaffold.dev/scaffold/sid"
)

// A drain is two orders, one after the other: routers send the host no new flow of the service, and once they
// all do, the host does with its flows what the mode says.

// Mode is what the host is to do with its flows of the service: "" where it serves on.
func (x *Overrides) Mode(host string, id sid.ServiceID) string {
	o := x.Of(id, host)
	r, ok := x.Services.ByID(id)
	if !o.Drain || !ok {
		return ""
	}
	return cmp.Or(o.Mode, r.Policy.DrainMode())
}

// Tell lets a host know what to do with its flows of one service, if it serves it and does not know yet:
// to serve on at once, to drain once the routers send it no more.
func (x *Overrides) Tell(host string, id sid.ServiceID) {
	if !x.Hosts.Serves(host, id) {
		return
	}
	k, mode := key{id, host}, x.Mode(host, id)
	delete(x.waits, k)
	switch {
	case mode == x.Hosts.Told(host, id):
	case mode == "":
		x.Hosts.Tell(host, id, mode)
	default:
		w := &wait{}
		x.waits[k] = w
		x.Loop.After(x.Patience, func() { w.overdue = true })
	}
}

// Flush tells those that waited for the routers. It is called once the rules were sent.
func (x *Overrides) Flush() {
	for k, w := range x.waits {
		if !w.asked {
			w.asked, w.upTo = true, x.Routers.Generation()
		}
		if !w.overdue && x.Routers.Behind(w.upTo) {
			continue
		}
		delete(x.waits, k)
		if x.Hosts.Connected(k.host) {
			x.Hosts.Tell(k.host, k.service, x.Mode(k.host, k.service))
		}
	}
}
