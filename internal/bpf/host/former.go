package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cilium/ebpf"
)

// retiredFor is how long a socketID that a flow gave up is remembered, RETIRED_NS of answer.h.
const retiredFor = 60 * time.Second

// formerRounds is how many sweeps there are for one that forgets socketIDs, and ports of answers. They cost memory, nothing
// else.
const formerRounds = 4

// sweepFormer forgets the socketIDs that flows gave up long ago.
func (e *Edge) sweepFormer(now uint64) error {
	var ids []uint64
	err := scan(e.maps.FormerIds, func(id, when *uint64) bool {
		if age(now, *when) > retiredFor {
			ids = append(ids, *id)
		}
		return true
	})
	if err != nil {
		return err
	}
	return deleteAll(e.maps.FormerIds, ids)
}

// takeRetired takes what an edge of before remembers, in a map of another kind which had room for 16,384.
func (e *Edge) takeRetired() error {
	if !e.pinned("retired") {
		return nil
	}
	path := filepath.Join(e.cfg.Pin, "retired")
	m, err := ebpf.LoadPinnedMap(path, nil)
	if err != nil {
		return fmt.Errorf("host edge: take over %s: %w", path, err)
	}
	defer m.Close()
	var id, when uint64
	for it := m.Iterate(); it.Next(&id, &when); {
		if err := e.maps.FormerIds.Put(&id, &when); err != nil {
			return fmt.Errorf("host edge: take over %s: %w", path, err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("host edge: %w", err)
	}
	return nil
}
