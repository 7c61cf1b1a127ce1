package names

import (
	"fmt"
	"strings"
	"time"
)

// A Policy is how a service's flows and instances are treated. The zero Policy is the default.
type Policy struct {
	Failover  string `json:"failover,omitempty"`  // "reset", "continue"
	Drain     string `json:"drain,omitempty"`     // "wait", "shed"
	Ready     string `json:"ready,omitempty"`     // "", "tcp", "http:/path", "exec:NAME"
	Weight    uint32 `json:"weight,omitempty"`    // of hosts that nobody gave one; 0 means 100
	Datagrams string `json:"datagrams,omitempty"` // "bound", "unbound", "unset"
	DSCP      uint32 `json:"dscp,omitempty"`      // 0..63
	Patience  uint32 `json:"patience,omitempty"`  // ms that a host which does not answer is waited for before its flows turn to others
	Boost     bool   `json:"boost,omitempty"`     // agents of boost carry its TCP connections between sites
}

// What becomes of flows whose server is gone, and of those of an instance that is drained. The first of each is
// the default.
const (
	Reset    = "reset"
	Continue = "continue"
	Wait     = "wait"
	Shed     = "shed"
)

// DrainMode is what becomes of the flows of an instance that is drained.
func (p Policy) DrainMode() string {
	if p.Drain == "" {
		return Wait
	}
	return p.Drain
}

// Waits is the patience.
func (p Policy) Waits() time.Duration { return time.Duration(p.Patience) * time.Millisecond }

// ParsePatience reads a patience as people write it.
func ParsePatience(text string) (ms uint32, err error) {
	d, err := time.ParseDuration(text)
	if longest := MaxPatience * time.Millisecond; err != nil || d < 0 || d > longest {
		return 0, fmt.Errorf("patience %q: want a duration from 0s to %v, such as 3s", text, longest)
	}
	return uint32(d.Milliseconds()), nil
}

// Limits of Policy's numbers.
const (
	MaxWeight   = 65535
	MaxDSCP     = 63
	MaxPatience = 60_000 // ms; a host that is away for longer has left
)

// Check says which field is out of its range, and what the range is.
func (p Policy) Check() error {
	switch {
	case !oneOf(p.Failover, "", Reset, Continue):
		return fmt.Errorf("policy failover %q: want %s (the client is told at once) or %s (at another instance that can resume)", p.Failover, Reset, Continue)
	case !oneOf(p.Drain, "", Wait, Shed):
		return fmt.Errorf("policy drain %q: want %s (flows end in peace) or %s (they fail over)", p.Drain, Wait, Shed)
	case !oneOf(p.Datagrams, "", "bound", "unbound", "unset"):
		return fmt.Errorf("policy datagrams %q: want bound, unbound or unset", p.Datagrams)
	case p.Weight > MaxWeight:
		return fmt.Errorf("policy weight %d: want 1 to %d, or 0 for the default of 100", p.Weight, MaxWeight)
	case p.DSCP > MaxDSCP:
		return fmt.Errorf("policy dscp %d: want 0 to %d", p.DSCP, MaxDSCP)
	case p.Patience > MaxPatience:
		return fmt.Errorf("policy patience %v: want 0s to %v", p.Waits(), MaxPatience*time.Millisecond)
	}
	return p.checkReady()
}

func (p Policy) checkReady() error {
	kind, what, _ := strings.Cut(p.Ready, ":")
	switch {
	case p.Ready == "" || p.Ready == "tcp":
	case kind == "http" && strings.HasPrefix(what, "/"):
	case kind == "exec" && strings.TrimSpace(what) != "":
	default:
		return fmt.Errorf("policy ready %q: want nothing (listening is enough), tcp, http:/path or exec:NAME", p.Ready)
	}
	return nil
}

func oneOf(s string, of ...string) bool {
	for _, o := range of {
		if s == o {
			return true
		}
	}
	return false
}
