package oftables

import (
	"fmt"
	"slices"
)

// Unheld says for people what of the wishes the switch cannot hold. What a redirect would meet is punted.
func (t *Tables) Unheld() (reasons []string) {
	if n := len(t.redirects); n > 0 && !t.masks() {
		reasons = append(reasons, fmt.Sprintf("%d redirects of hosts that moved: OpenFlow 1.3 cannot write half an address, such packets go through the controller", n))
	}
	for owner, o := range t.owners {
		if n := len(o.unsaid); n > 0 {
			reasons = append(reasons, fmt.Sprintf("%d entries of owner %d: %v cannot say them", n, owner, t.o.Version))
		}
		switch {
		case o.uncopied > 0 && !t.canCopy():
			reasons = append(reasons, fmt.Sprintf("%d subscriptions of owner %d to copies of packets: they need an Open vSwitch that speaks OpenFlow 1.5", o.uncopied, owner))
		case o.uncopied > 0:
			reasons = append(reasons, fmt.Sprintf("%d subscriptions of owner %d to copies of packets: a switch holds at most %d", o.uncopied, owner, mostCopies))
		}
	}
	if n := len(t.foreign); n > 0 {
		taken := 0
		for key := range t.flows.wanted() {
			if _, is := t.foreign[key]; is {
				taken++
			}
		}
		if taken > 0 {
			reasons = append(reasons, fmt.Sprintf("%d entries in whose place somebody else has one", taken))
		}
	}
	slices.Sort(reasons)
	return reasons
}
