package host

import "fmt"

// Usage is what the edge has room for and what its maps take.
type Usage struct {
	Bytes    uint64 // of kernel memory, all maps
	MaxFlows uint32
}

// Usage asks the kernel for the memory of the maps.
func (e *Edge) Usage() (Usage, error) {
	u := Usage{MaxFlows: e.cfg.MaxFlows}
	for name, m := range e.shared() {
		info, err := m.Info()
		if err != nil {
			return u, fmt.Errorf("host edge: ask for the memory of %s: %w", name, err)
		}
		if n, ok := info.Memlock(); ok {
			u.Bytes += n
		}
	}
	return u, nil
}
