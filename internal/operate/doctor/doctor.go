// Package doctor examines a machine: whether Scaffold can run here, what stands in its way, what that
// costs and what to do. It changes nothing; what it must try, it takes away again.
//
// Everything it reads comes through a Machine, so that every finding is tested without having such a
// machine.
package doctor

// A State says how much a finding matters.
type State string

// The states, from good to bad.
const (
	Good    State = "ok"      // as it should be
	Note    State = "note"    // works, at a cost
	InWay   State = "in way"  // something configured here breaks flows
	Missing State = "missing" // cannot run
)

// A Finding is one thing that was looked at.
type Finding struct {
	Area  string `json:"area"` // "kernel", "permissions", "settings", "filters", "links", "clock", "lab", "network"
	Name  string `json:"name"`
	State State  `json:"state"`
	Found string `json:"found"`          // what is there
	Cost  string `json:"cost,omitempty"` // what it costs
	Do    string `json:"do,omitempty"`   // what to do about it
}

// A Report is everything that was found, and the worst of it.
type Report struct {
	Verdict  State     `json:"verdict"`
	Findings []Finding `json:"findings"`
}

// Examine looks at everything.
func Examine(m Machine) Report {
	var r Report
	for _, look := range []func(Machine) []Finding{permissions, kernel, hierarchy, settings, filters, links, rivals, clocks, switches, tunnels, network} {
		r.Findings = append(r.Findings, look(m)...)
	}
	r.Verdict = worst(r.Findings)
	return r
}

func worst(findings []Finding) State {
	order := map[State]int{Good: 0, Note: 1, InWay: 2, Missing: 3}
	verdict := Good
	for _, f := range findings {
		if order[f.State] > order[verdict] {
			verdict = f.State
		}
	}
	return verdict
}
