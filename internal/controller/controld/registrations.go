package controld

import (
	"fmt"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/notes"
	"scaffold.dev/scaffold/internal/controller/controld/registrations"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/sid"
)

// newRegistrations are those of the network's hosts, and what they need of the other rooms.
func newRegistrations(n *network) *registrations.Registrations {
	return registrations.New(registrations.Config{
		Named: n.cfg.Serve == config.ServeNamed, Plan: n.plan, Services: n.names, Access: n.access, Drains: n.overrides, Hosts: serving{n},
		Events: n.events, Saver: n.saver, Loop: n.loop, Refused: n.metrics.refusedServing, Ready: func() { n.changedHands = true },
	})
}

// serving are the hosts, as registrations need them.
type serving struct{ n *network }

func (s serving) Here(host string) bool {
	h := s.n.hosts[host]
	return h != nil && h.Here
}

func (s serving) Connected(host string) bool {
	h := s.n.hosts[host]
	return h != nil && h.session != nil
}

func (s serving) Order(host string, o *apiv1.HostOrder)   { s.n.hosts[host].session.Send(o) }
func (s serving) Locator(host string) sid.Locator         { return s.n.hosts[host].Locator }
func (s serving) Keys(host string, shown []byte) [][]byte { return s.n.members.Keys(host, shown) }
func (s serving) Record(host string) store.Host           { return s.n.hosts[host].Host.Host }
func (s serving) MayTell(host string) bool                { return notes.MayTell(&s.n.hosts[host].meter) }
func (s serving) Unknown(host string, id sid.ServiceID)   { s.n.missed(s.n.hosts[host], id) }

func (s serving) Revoked(key []byte) bool {
	if s.n.gate == nil {
		return false // in an open network nobody is
	}
	_, revoked := s.n.gate.IsRevoked(key)
	return revoked
}

// unrecordedGrace is how many times longer rules wait where the store may lack what hosts serve, for a controller of a version
// before led that did not store it, or some of it cannot be read: as long as hosts need whose switch tries again after up to 8 s.
const unrecordedGrace = 5

// recall plans what hosts served before this controller led, and says how many times longer than usual they are waited for.
func (n *network) recall(state store.State) (times time.Duration) {
	for _, r := range state.Registrations {
		n.registrations.Remember(r)
	}
	n.unread(state.Unread)
	n.unrecorded = state.RegistrationsTerm+1 != state.Epoch || len(state.Unread) > 0
	switch {
	case n.restored != nil:
		return restoredGrace
	case n.unrecorded:
		return unrecordedGrace
	}
	n.saver.Later(store.PutRegistrationsTerm(n.epoch))
	return 1
}

// unread names records that cannot be read: one of them, for after a version that wrote all of them otherwise it is all.
func (n *network) unread(list []store.Unread) {
	for _, u := range list {
		n.registrations.Unread(u.Host, u.Page)
	}
	if len(list) == 0 {
		return
	}
	which := "the record " + events.Printable(list[0].Key)
	if len(list) > 1 {
		which = fmt.Sprintf("%s and %s", which, events.Counted(len(list)-1, "other record"))
	}
	n.events.Tell("controller.unread", n.cfg.Name, events.Because(which+" cannot be read: what a host serves by it is not planned before the host says it again", list[0].Why), "record", list[0].Key)
}

// record notes that from now on the store has all that hosts serve: they had the time to say it.
func (n *network) record() {
	if n.unrecorded {
		n.unrecorded = false
		n.saver.Later(store.PutRegistrationsTerm(n.epoch))
	}
}
