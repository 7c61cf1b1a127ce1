package controld

import (
	"errors"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/store"
)

// saved is told by the saver, and of each order, whether writing works. It runs outside the loop.
func (n *network) saved(err error) {
	n.loop.Post(func() {
		n.noteSaved(err)
		n.process.Watch.Again()
	})
	n.process.Watch.Again()
}

func (n *network) noteSaved(err error) {
	was := n.notSaved
	n.notSaved = err
	switch {
	case err != nil && was == nil:
		n.notSince = time.Now()
		n.metrics.storeErrors.Inc()
		n.events.Tell("store.failing", n.cfg.Name, "state is not saved, the network goes on from memory and saving is tried again: "+err.Error())
	case err == nil && was != nil:
		n.events.Tell("store.back", n.cfg.Name, "state is saved again")
	}
}

// storeState is what operators are told of the store.
func (n *network) storeState() *apiv1.StoreState {
	s := &apiv1.StoreState{At: n.process.store.String(), Waiting: uint32(n.saver.Waiting())}
	trouble := n.notSaved
	if free, needed, looked := n.process.store.Disk(); looked {
		s.FreeBytes, s.NeededBytes = free, needed
		if free < needed && trouble == nil { // the next write will fail
			trouble = n.process.store.Room()
		}
	}
	if trouble != nil {
		s.Trouble, s.Full = trouble.Error(), errors.Is(trouble, store.ErrFull)
	}
	if n.notSaved != nil {
		s.SinceUnixMs = n.notSince.UnixMilli()
	}
	return s
}
