package member

import (
	"fmt"

	"scaffold.dev/scaffold/internal/api"
)

// A network is the one whose controllers a member follows, and how far it has followed them.
type network struct {
	id    string
	epoch uint64 // of the last leader
}

// believe takes a controller for the one that leads. Where there are others to go to, it refuses one of another network,
// and one whose time is over and who does not know it yet. Who knows a single controller follows it wherever its store
// was replaced.
func (n *network) believe(all *api.Controllers, j joined, epoch uint64) error {
	if all.Several() {
		switch {
		case n.id != "" && j.GetNetworkId() != n.id:
			return fmt.Errorf("%w (%s)", ErrOther, j.GetNetwork())
		case epoch < n.epoch:
			return ErrDeposed
		}
	}
	n.id, n.epoch = j.GetNetworkId(), epoch
	return nil
}
