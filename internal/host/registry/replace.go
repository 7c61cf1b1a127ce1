package registry

import (
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/core/serving"
	"scaffold.dev/scaffold/sid"
)

// replace makes a dump of a guest's sockets, or of the host's own, the truth.
func (r *Registry) replace(guest uint16, events []sockets.Event) {
	dump, owners := map[uint64]sid.Triple{}, map[uint64]serving.Owner{}
	for _, e := range events {
		if t, ok := r.triple(guest, e); ok {
			dump[e.Cookie], owners[e.Cookie] = t, owner(guest, e)
		}
	}
	up, down := r.sockets.Replace(guest, dump, owners)
	for _, t := range down {
		r.down(t, "no socket any more")
	}
	for _, t := range up {
		r.up(t, "found")
		r.instances[t].trusted = !r.dumped && r.edge.Adopted()
	}
	r.heard(guest)
	r.shareAll()
}

// heard notes that the sockets of a namespace from before are known, or that it is gone.
func (r *Registry) heard(guest uint16) {
	delete(r.awaited, guest)
	if r.dumped || len(r.awaited) > 0 {
		return
	}
	r.withdrawStale()
	r.dumped, r.dirty = true, true
}

// withdrawStale takes back what the edge still lets in for programs that ended while no daemon was
// there.
func (r *Registry) withdrawStale() {
	admitted, err := r.edge.Admitted()
	if err != nil {
		r.cfg.Log.Warn("cannot compare the edge with the sockets", "error", err)
	}
	for _, t := range admitted {
		if !r.known(t) {
			r.before[t] = true
		}
		if r.instances[t] == nil {
			r.edge.Withdraw(t) //nolint:errcheck // it may be gone
		}
	}
	r.sweepJudgements()
}

// Forget withdraws what a guest served that is gone.
func (r *Registry) Forget(guest uint16) { r.replace(guest, nil) }
