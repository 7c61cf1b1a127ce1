package divert

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// sweepAbandoned removes the pins of agents whose network namespaces are gone.
func sweepAbandoned(pattern string) {
	dirs, _ := filepath.Glob(pattern) // the pattern is well-formed
	for _, dir := range dirs {
		sweepIfAbandoned(dir)
	}
}

// sweepIfAbandoned has the lock meanwhile: an agent that begins pins its maps before its programs have them.
func sweepIfAbandoned(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && abandoned(dir) {
		os.RemoveAll(dir)
	}
}

// abandoned reports whether what is pinned in dir works no more: links none of which has an interface, or, where filters
// take their place, which are not pinned, sessions that no program has.
func abandoned(dir string) bool {
	pins, _ := filepath.Glob(filepath.Join(dir, linkPin+"*"))
	if slices.ContainsFunc(pins, alive) {
		return false
	}
	return len(pins) > 0 || unused(filepath.Join(dir, pinned[0]))
}

func alive(pin string) bool {
	l, err := link.LoadPinnedLink(pin, nil)
	if err != nil {
		return true // it cannot be told
	}
	defer l.Close()
	info, err := l.Info()
	return err != nil || info.TCX() == nil || info.TCX().Ifindex != 0
}

// unused reports whether no program has the map that is pinned there.
func unused(pin string) bool {
	m, err := ebpf.LoadPinnedMap(pin, nil)
	if err != nil {
		return false // there is none, or it cannot be told
	}
	defer m.Close()
	info, err := m.Info()
	if err != nil {
		return false
	}
	want, ok := info.ID()
	for id := ebpf.ProgramID(0); ok; {
		if id, err = ebpf.ProgramGetNextID(id); err != nil {
			return errors.Is(err, os.ErrNotExist) // that was the last
		}
		if has(id, want) {
			return false
		}
	}
	return false
}

// has reports whether the program has the map; one that has just gone has none.
func has(id ebpf.ProgramID, m ebpf.MapID) bool {
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return false
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return true
	}
	maps, _ := info.MapIDs()
	return slices.Contains(maps, m)
}
