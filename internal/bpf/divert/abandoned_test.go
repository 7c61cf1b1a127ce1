package divert

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// TestPinsOfGoneNamespacesAreSwept, and no others: with links, which lose their interfaces, and without.
func TestPinsOfGoneNamespacesAreSwept(t *testing.T) {
	safety.Test(t, safety.Trace)
	for _, noTCX := range []bool{false, true} {
		left := filepath.Join(nstest.BPFFS, "boost-left")
		t.Run("the namespace that goes", func(t *testing.T) {
			d := open(t, Config{Pin: left, NoTCX: noTCX})
			sweepAbandoned(left)
			if _, err := os.Stat(left); err != nil {
				t.Errorf("the pins of an agent that runs are swept: %v", err)
			}
			// As a kill does it: descriptors go, what is pinned or attached stays.
			must(t, d.lock.Close(), d.objs.Close(), d.ring.Close())
			for _, h := range d.hooks {
				if l, ok := h.(pinnedLink); ok {
					must(t, l.l.Close())
				}
			}
			sweepAbandoned(left)
			if _, err := os.Stat(left); err != nil {
				t.Errorf("the pins of a killed agent are swept, whose namespace is there: %v", err)
			}
			d.hooks, d.lock, d.ring, d.objs = nil, nil, nil, divertObjects{} // for Close
		})
		nstest.Wait(t, "bpftool link", func() error {
			if sweepAbandoned(left); exists(left) {
				return errors.New("the pins of a gone namespace are there still")
			}
			return nil
		})
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
