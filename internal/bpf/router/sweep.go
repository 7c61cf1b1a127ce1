package router

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Sweep removes what routers whose network namespaces are gone have left in their directories, which
// are those that match the pattern.
func Sweep(pattern string) error {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		if abandoned(dir) {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}

// abandoned reports whether what is pinned in dir works no more: links none of which has an interface, or, where
// filters take their place, which are not pinned, tables that no program has.
func abandoned(dir string) bool {
	pins, _ := filepath.Glob(filepath.Join(dir, linkPin+"*"))
	for _, pin := range pins {
		if alive(pin) {
			return false
		}
	}
	return len(pins) > 0 || unused(filepath.Join(dir, configPin))
}

// configPin is the map that every program of a router has.
const configPin = "config"

// unused reports whether no program has the map that is pinned there. A router pins its maps once its program has them.
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

func alive(pin string) bool {
	l, err := link.LoadPinnedLink(pin, nil)
	if err != nil {
		return false
	}
	defer l.Close()
	info, err := l.Info()
	return err == nil && info.TCX() != nil && info.TCX().Ifindex != 0
}
