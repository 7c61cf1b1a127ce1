package divert

import "fmt"

// reasons are the names of enum divert_reason, in its order.
var reasons = [...]string{"none", "delivered", "held", "held_again", "accepted", "passed", "passed_again", "passed_agent_away",
	"passed_undecided", "passed_held_limit", "passed_unread", "passed_protected", "passed_fragment", "passed_malformed",
	"passed_long", "passed_no_socket", "passed_not_assigned", "no_hold", "dropped_no_listener", "delivered_error",
	"reset_unfinished", "dropped_rewrite"}

// Counters returns how many packets met which fate, since Open.
func (d *Diverter) Counters() (map[string]uint64, error) {
	counters := make(map[string]uint64, len(reasons))
	for i, name := range reasons[1:] {
		var perCPU []uint64
		if err := d.objs.Drops.Lookup(uint32(i+1), &perCPU); err != nil {
			return nil, fmt.Errorf("counter %s: %w", name, err)
		}
		for _, n := range perCPU {
			counters[name] += n
		}
	}
	return counters, nil
}
