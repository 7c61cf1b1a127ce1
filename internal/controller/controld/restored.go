package controld

import (
	"fmt"

	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/sid"
)

// A state that was restored is true of the time when its backup was made. What has happened since, hosts and routers
// know: a host may be elsewhere, and a locator that the backup gives to one, or to nobody, may be another one's. So who
// reports counts, and a record only for as long as nobody who is there says otherwise.

// restoredGrace is how many times longer than after a restart rules wait: all hosts are looked for, not those on record.
const restoredGrace = 3

// afterRestore says what is in doubt, and for how long: as long as a locator that was left is given to nobody.
func (n *network) afterRestore() {
	if n.restored == nil {
		return
	}
	n.unknown = make(map[sid.ServiceID]struct{})
	n.events.Tell("controller.restored", n.cfg.Name, "the state is that of a backup of "+n.restored.Made+": hosts and routers say what has changed since; services, weights and drains of since then are gone, and who was revoked since then is not", "made", n.restored.Made)
	n.loop.After(n.cfg.Quarantine, func() {
		n.restored = nil
		n.saver.Later(store.DeleteRestored())
		n.pushes.Anew() // sources are known again: they filter by them
	})
}

// missed tells, once, of a service that hosts serve and a restored state does not have.
func (n *network) missed(h *host, id sid.ServiceID) {
	if n.restored == nil {
		return
	}
	if _, told := n.unknown[id]; told {
		return
	}
	n.unknown[id] = struct{}{}
	n.events.Tell("service.unknown", h.Name, fmt.Sprintf("host serves %v, which the restored state does not have: if it was created since, create it again: scaffold service create NAME --sid %v", id, id), "sid", id.String())
}
