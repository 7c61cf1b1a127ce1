// Package stats reads the kernel's own accounting of BPF programs: how often each ran and how long.
package stats

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Enable turns the accounting on, machine-wide, until the Closer is closed (kernel 5.8).
func Enable() (io.Closer, error) {
	c, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		return nil, fmt.Errorf("turn on the kernel's accounting of BPF programs: %w", err)
	}
	return c, nil
}

// A Usage is what programs of one name used.
type Usage struct {
	Runs  uint64
	Nanos uint64
}

// PerRun is the mean time of one run in nanoseconds, 0 if it never ran.
func (u Usage) PerRun() float64 {
	if u.Runs == 0 {
		return 0
	}
	return float64(u.Nanos) / float64(u.Runs)
}

// Sub is the usage since an earlier reading.
func (u Usage) Sub(before Usage) Usage {
	return Usage{u.Runs - before.Runs, u.Nanos - before.Nanos}
}

// Read sums the usage of all loaded programs by name.
func Read() (map[string]Usage, error) {
	all := map[string]Usage{}
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list BPF programs: %w", err)
		}
		id = next
		add(all, id)
	}
}

// add leaves out what was unloaded between listing and reading.
func add(all map[string]Usage, id ebpf.ProgramID) {
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return
	}
	s, err := p.Stats()
	if err != nil {
		return
	}
	u := all[info.Name]
	all[info.Name] = Usage{u.Runs + s.RunCount, u.Nanos + uint64(s.Runtime)}
}

// Loaded lists the programs in the kernel, machine-wide, by their number.
func Loaded() (map[uint32]string, error) {
	all := map[uint32]string{}
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list BPF programs: %w", err)
		}
		id = next
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue // unloaded meanwhile
		}
		if info, err := p.Info(); err == nil {
			all[uint32(id)] = info.Name
		}
		p.Close()
	}
}

// Entries are how many a hash table has that is pinned there.
func Entries(pinned string) (n int, err error) {
	m, err := ebpf.LoadPinnedMap(pinned, &ebpf.LoadPinOptions{ReadOnly: true})
	if err != nil {
		return 0, fmt.Errorf("table %s: %w", pinned, err)
	}
	defer m.Close()
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	all := m.Iterate()
	for all.Next(&key, &value) {
		n++
	}
	return n, all.Err()
}
