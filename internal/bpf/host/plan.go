package host

import "scaffold.dev/scaffold/sid"

// Space is the address plan that the edge was opened for.
func (e *Edge) Space() sid.Space { return e.cfg.Space }
