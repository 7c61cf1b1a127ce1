package controld

import (
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/store"
)

// forgetHost takes a host out of the network for good.
func (n *network) forgetHost(name string) {
	h := n.hosts[name]
	if h == nil {
		return
	}
	if s := h.session; s != nil {
		h.session = nil
		s.End(session.ErrRevoked)
	}
	n.leave(h, "it was forgotten", true)
	n.plan.DropHeld(name)
	for _, l := range n.locators.Left()[name] { // another machine of the name is another host
		n.locators.Hold(l, name+" (forgotten)")
	}
	for _, p := range n.pledges.Rename(name, name+" (forgotten)") {
		n.saver.Later(store.PutPledge(p))
	}
	for _, o := range n.overrides.ForgetHost(name) {
		n.saver.Later(store.DeleteOverride(o))
	}
	delete(n.hosts, name)
	n.registrations.Forget(name)
	n.saver.Later(store.DeleteHost(name)) // leave has saved it
}

// tellRevoked has hosts take no certificate of the keys any more.
func (n *network) tellRevoked(list []*apiv1.Revocation) {
	order := &apiv1.HostOrder{Order: &apiv1.HostOrder_Revoked{Revoked: &apiv1.Revocations{List: list}}}
	for _, h := range n.hosts {
		if h.session != nil {
			h.session.Send(order)
		}
	}
}
