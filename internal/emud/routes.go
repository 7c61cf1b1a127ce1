package emud

import (
	"time"
)

// routes keep the computed routes in step with the faults.
type routes struct {
	faults, installed int
	changedRoutes     int
	took              time.Duration
	err               error
	timer             *time.Timer
}

// changed takes note of faults.
func (r *routes) changed(n int) { r.faults += n }

func (r *routes) state() Routes {
	s := Routes{Faults: r.faults, Installed: r.installed, Changed: r.changedRoutes, Took: r.took}
	if r.err != nil {
		s.Error = r.err.Error()
	}
	return s
}
