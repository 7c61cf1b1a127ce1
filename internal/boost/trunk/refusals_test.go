package trunk

import (
	"testing"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// Far more are refused than there are reasons remembered, before one is told: what is said of the first ones is RETIRE.
func TestRefusalsThatAreForgottenAreTold(t *testing.T) {
	r := newRig(t, 1)
	r.near.mu.Lock()
	defer r.near.mu.Unlock()
	for id := uint64(1); id <= 2*(refusalsKept+1); id += 2 {
		r.near.refused.add(id, frame.NoRoom)
		r.near.say(control{typ: frame.TypeRefused, session: id})
	}
	c := r.near.conns[1]
	said := map[frame.Type]int{}
	for b := r.near.nextControl(c, nil); len(b) > 0; b = r.near.nextControl(c, nil) {
		said[frame.Type(b[0])]++
	}
	if said[frame.TypeRetire] != 1 || said[frame.TypeRefused] != refusalsKept {
		t.Errorf("said: %v", said)
	}
}
